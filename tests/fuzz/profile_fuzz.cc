// Any bytes at all must give a profile that survives being written and read
// again, or an error of one line; never a crash or an exception.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "runtime/profile_json.h"

namespace coldstream {
namespace {

void CheckLine(const std::string& line) {
  CHECK(!line.empty() && line.size() < 2000);
  for (const char c : line) CHECK(static_cast<uint8_t>(c) >= 0x20);
}

void CheckProfile(std::string_view text) {
  const auto parsed = ParseProfile(text);
  if (!parsed.ok()) return CheckLine(MessageOf(parsed.status()));
  if (parsed->refused > 0) CheckLine(parsed->refusal);
  for (const auto& [key, disk] : parsed->data.disks)
    CHECK(disk.depth >= 1 && disk.chunk_bytes >= 1);
  const std::string written = FormatProfile(parsed->data);
  const auto again = ParseProfile(written);
  CHECK(again.ok() && again->refused == 0);
  CHECK(FormatProfile(again->data) == written);
}

}  // namespace
}  // namespace coldstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  coldstream::CheckProfile({reinterpret_cast<const char*>(data), size});
  return 0;
}
