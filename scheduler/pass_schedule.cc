#include "scheduler/pass_schedule.h"

#include <cstddef>

namespace coldstream {

std::vector<Stage> MakeStages(const std::vector<bool>& needs_load) {
  std::vector<Stage> stages;
  const int count = static_cast<int>(needs_load.size());
  for (int unit = 0; unit < count; ++unit) {
    const bool load = needs_load[static_cast<size_t>(unit)];
    if (load || stages.empty()) {
      stages.push_back({unit, unit + 1, load});
    } else {
      stages.back().end = unit + 1;
    }
  }
  return stages;
}

}  // namespace coldstream
