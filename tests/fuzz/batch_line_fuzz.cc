// Any bytes at all as a line of a batch must give a request within the bounds
// that the sampler and the engine rely on, or an error of one line; as a line
// of its output a record, or an error; never a crash or an exception.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "runtime/sampler.h"
#include "tools/batch_request.h"
#include "tools/batch_scan.h"

namespace coldstream {
namespace {

void CheckLine(const std::string& line) {
  CHECK(!line.empty() && line.size() < 2000);
  for (const char c : line) CHECK(static_cast<uint8_t>(c) >= 0x20);
}

void CheckBatchLine(std::string_view text) {
  const BatchLine line = ParseBatchLine(text, 0);
  CHECK(line.custom_id.size() <= kLongestCustomId);
  if (line.error) {
    CHECK(!line.error->code.empty() && line.error->status_code == 400);
    return CheckLine(line.error->message);
  }
  CHECK(!line.custom_id.empty());
  const Request& request = line.request.request;
  CHECK(Sampler::Create(request.generate.sampling).ok());
  CHECK(request.generate.max_tokens >= -1);
  CHECK(request.generate.stop.size() <= kMostStops);
  CHECK(request.logprobs.value_or(0) >= 0);
  CHECK(request.logprobs.value_or(0) <= kMostLogprobs);
}

void CheckBatchRecord(std::string_view text) {
  const auto record = ParseBatchRecord(text);
  if (record.ok()) {
    CHECK(record->line > 0);
  } else {
    CheckLine(MessageOf(record.status()));
  }
}

}  // namespace
}  // namespace coldstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  coldstream::CheckBatchLine(text);
  coldstream::CheckBatchRecord(text);
  return 0;
}
