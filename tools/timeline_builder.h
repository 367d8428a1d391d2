// Makes a Timeline out of trace events, in any order.
//
//   TimelineBuilder builder;
//   for (const json& event : events) RETURN_IF_ERROR(builder.Add(event));
//   Timeline timeline = std::move(builder).Build();
//
// Errors: DataLoss: an event without what its kind needs, and which.
#ifndef COLDSTREAM_TOOLS_TIMELINE_BUILDER_H_
#define COLDSTREAM_TOOLS_TIMELINE_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "nlohmann/json.hpp"
#include "tools/timeline.h"

namespace coldstream {

class TimelineBuilder {
 public:
  Status Add(const nlohmann::json& event);
  Timeline Build() &&;

 private:
  struct Row {
    TimelineRow row;
    int64_t place = 0;  // thread_sort_index
  };
  using ThreadKey = std::pair<std::string, std::string>;  // process, thread

  Status AddSpan(const nlohmann::json& event);
  Status AddCount(const nlohmann::json& event);
  void AddMetadata(const nlohmann::json& event);
  StatusOr<int64_t> Nanoseconds(const nlohmann::json& event,
                                const char* key) const;
  Status Bad(const std::string& what) const;
  Row& RowOf(const nlohmann::json& event);
  uint32_t IndexOf(const std::string& name);
  void ShiftToZero(Timeline* timeline) const;

  Timeline timeline_;  // but its rows
  std::map<ThreadKey, Row> rows_;
  std::unordered_map<std::string, uint32_t> names_;
  std::unordered_map<std::string, size_t> counters_;
  size_t event_ = 0;  // the one being added
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_TIMELINE_BUILDER_H_
