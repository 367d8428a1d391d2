#include "tools/shard.h"

#include <charconv>
#include <string>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr int64_t kMostShards = 1000000;

bool ReadWhole(std::string_view text, int64_t* number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, *number);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

StatusOr<Shard> ParseShard(std::string_view text) {
  Shard shard;
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos &&
      ReadWhole(text.substr(0, slash), &shard.index) &&
      ReadWhole(text.substr(slash + 1), &shard.count) && shard.index >= 1 &&
      shard.index <= shard.count && shard.count <= kMostShards)
    return shard;
  return absl::InvalidArgumentError(absl::StrFormat(
      "--shard: expected I/N with I from 1 to N and N up to %d, got \"%s\"",
      kMostShards, std::string(text)));
}

}  // namespace coldstream
