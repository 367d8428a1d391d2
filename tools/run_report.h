// What a run did, in figures that were measured: as JSON and in a few lines.
#ifndef COLDSTREAM_TOOLS_RUN_REPORT_H_
#define COLDSTREAM_TOOLS_RUN_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/engine.h"
#include "runtime/session.h"

namespace coldstream {

// Common fields of `run --json` and `eval --json`. A rate that was not measured
// (no token generated, nothing read) is null. Bytes, seconds; GB are 10^9.
nlohmann::ordered_json ReportJson(const Engine& engine,
                                  const SessionTimes& times);

// At most five lines for people, the last of which says what limited the run
// and what would help most. `seed`: of sampling, where there was any.
std::string ReportText(const Engine& engine, const SessionTimes& times,
                       std::optional<uint64_t> seed = std::nullopt);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_RUN_REPORT_H_
