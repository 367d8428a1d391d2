#include "scheduler/pass_schedule.h"

#include <cstddef>

namespace coldstream {

std::vector<Stage> MakeStages(const std::vector<bool>& needs_load) {
  std::vector<Stage> stages;
  int begin = 0;
  const int count = static_cast<int>(needs_load.size());
  for (int unit = 0; unit < count; ++unit) {
    if (!needs_load[static_cast<size_t>(unit)]) continue;
    stages.push_back({begin, unit + 1, true});
    begin = unit + 1;
  }
  if (begin < count) stages.push_back({begin, count, false});
  return stages;
}

}  // namespace coldstream
