// A profile as text: JSON with the format's name and version on top.
//
// Any text parses to something or gives an error; nothing is thrown. Entries
// are taken one by one: one that lacks a field or has a value out of range is
// left out and counted, the others hold.
#ifndef COLDSTREAM_RUNTIME_PROFILE_JSON_H_
#define COLDSTREAM_RUNTIME_PROFILE_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/profile_data.h"

namespace coldstream {

inline constexpr int kProfileVersion = 1;
// Of a section; when one grows past it the oldest entries go.
inline constexpr size_t kMaxProfileEntries = 64;

struct ParsedProfile {
  ProfileData data;
  size_t refused = 0;   // entries left out
  std::string refusal;  // the first one, and what was wrong
};

// Errors: DataLoss (no JSON, or no profile of ours of this version's shape);
// InvalidArgument (JSON of something else); FailedPrecondition (a newer version
// of ours).
StatusOr<ParsedProfile> ParseProfile(std::string_view text);

std::string FormatProfile(const ProfileData& data);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PROFILE_JSON_H_
