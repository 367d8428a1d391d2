// JSON from somebody else, read with care.
//
// Beyond what the library refuses: nesting deeper than kMostJsonDepth (so that
// nothing that walks a value can overflow the stack), a member that is there
// twice (which of them counts would be a guess), text that is not UTF-8.
// Errors: InvalidArgument: one line, with the column (in bytes, from 1).
#ifndef COLDSTREAM_TOOLS_STRICT_JSON_H_
#define COLDSTREAM_TOOLS_STRICT_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace coldstream {

inline constexpr int kMostJsonDepth = 32;

StatusOr<nlohmann::json> ParseStrictJson(std::string_view text);

// A value for an error message: `"a short text"`, `0.5`, `null`, `a list`.
std::string DescribeJson(const nlohmann::json& value);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_STRICT_JSON_H_
