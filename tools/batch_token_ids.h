// Token ids in a request's body.
#ifndef COLDSTREAM_TOOLS_BATCH_TOKEN_IDS_H_
#define COLDSTREAM_TOOLS_BATCH_TOKEN_IDS_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/tokenizer.h"
#include "tools/batch_fields.h"

namespace coldstream {

// No id and no count of tokens is larger.
inline constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

// Of a list, which the body has as `name`. What is no id is an error in
// `fields`, with its place: "prompt[3]".
std::vector<TokenId> ReadBatchTokenIds(const nlohmann::json& list,
                                       const std::string& name,
                                       BatchFields* fields);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_TOKEN_IDS_H_
