#include "tools/batch_token_ids.h"

#include <cstddef>

#include "absl/strings/str_format.h"

namespace coldstream {

std::vector<TokenId> ReadBatchTokenIds(const nlohmann::json& list,
                                       const std::string& name,
                                       BatchFields* fields) {
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const bool whole =
        list[i].is_number_unsigned() &&
        list[i].get<uint64_t>() <= static_cast<uint64_t>(kMostTokens);
    if (!whole) {
      fields->Fail("invalid_value", absl::StrFormat("%s[%d]", name, i),
                   "a token id", list[i]);
      return {};
    }
    ids.push_back(list[i].get<TokenId>());
  }
  return ids;
}

}  // namespace coldstream
