#include "tools/timeline_reader.h"

#include <fstream>
#include <functional>
#include <istream>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "io/file.h"
#include "nlohmann/json.hpp"
#include "tools/timeline_builder.h"

namespace coldstream {
namespace {

using nlohmann::json;

// Hands each element of "traceEvents" to the builder as soon as it is parsed,
// and keeps nothing of the file.
class EventFilter {
 public:
  explicit EventFilter(TimelineBuilder* builder) : builder_(builder) {}

  // json::parser_callback_t: false drops what was parsed.
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (depth == 1 && event == Event::key) {
      in_events_ = parsed == "traceEvents";
    } else if (depth == 1 && event == Event::array_start) {
      has_events_ |= in_events_;
    } else if (depth == 2 && in_events_ &&
               (event == Event::object_end || event == Event::array_end ||
                event == Event::value)) {
      if (status_.ok()) status_ = builder_->Add(parsed);
      return false;
    }
    return true;
  }

  bool has_events() const { return has_events_; }
  const Status& status() const { return status_; }

 private:
  TimelineBuilder* const builder_;
  bool in_events_ = false;
  bool has_events_ = false;
  Status status_;
};

Status Parse(std::istream& stream, TimelineBuilder* builder) {
  EventFilter filter(builder);
  try {
    const json rest = json::parse(stream, std::ref(filter));
  } catch (const json::parse_error& error) {
    return absl::DataLossError(
        absl::StrFormat("not JSON: wrong at byte %d", error.byte));
  } catch (const json::exception& error) {  // a number too large for a double
    return absl::DataLossError(absl::StrFormat("not JSON: %s", error.what()));
  }
  RETURN_IF_ERROR(filter.status());
  if (!filter.has_events()) {
    return absl::InvalidArgumentError(
        "no \"traceEvents\": expected a Chrome trace, as --trace writes it");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Timeline> ReadTimeline(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, File::Open(path, DirectMode::kOff));
  if (file->size() > kMaxTraceBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: %d bytes, expected at most %d; trace a shorter run", path,
        file->size(), kMaxTraceBytes));
  }
  std::ifstream stream(path, std::ios::binary);
  TimelineBuilder builder;
  const Status status = Parse(stream, &builder);
  if (!status.ok())
    return Status(status.code(), path + ": " + MessageOf(status));
  return std::move(builder).Build();
}

}  // namespace coldstream
