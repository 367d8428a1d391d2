// One of several equal parts of a list, by its place: --shard I/N.
#ifndef COLDSTREAM_TOOLS_SHARD_H_
#define COLDSTREAM_TOOLS_SHARD_H_

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace coldstream {

struct Shard {
  int64_t index = 1;  // 1..count
  int64_t count = 1;

  // Lines are dealt in turn: of 3 shards the second has lines 2, 5, 8, ...
  bool Has(int64_t line) const { return (line - 1) % count == index - 1; }
};

// "2/8". Errors: InvalidArgument.
StatusOr<Shard> ParseShard(std::string_view text);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SHARD_H_
