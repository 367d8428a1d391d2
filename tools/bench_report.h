// What `coldstream bench` says: a table for people, JSON, CSV.
//
// A rate that is not the disk's (tmpfs, page cache, buffered reads) is called a
// read rate in all three, with the reason beside it, and is held against no
// ceiling.
#ifndef COLDSTREAM_TOOLS_BENCH_REPORT_H_
#define COLDSTREAM_TOOLS_BENCH_REPORT_H_

#include <string>

#include "nlohmann/json.hpp"
#include "tools/bench_measurement.h"

namespace coldstream {

std::string BenchText(const BenchMeasurement& measurement);

nlohmann::ordered_json BenchJson(const BenchMeasurement& measurement);

// A header row and one row per measured run (RFC 4180, lines end with \n). What
// was not measured is an empty field.
std::string BenchCsv(const BenchMeasurement& measurement);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BENCH_REPORT_H_
