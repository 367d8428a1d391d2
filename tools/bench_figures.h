// What a benchmark's counts say: rates per tier against their ceilings, shares
// of the time, the link that limits. Pure arithmetic on a BenchMeasurement; no
// figure where nothing was measured.
//
// Units: rates in bytes per second, shares 0 to 1 of the time inside the
// engine's calls.
#ifndef COLDSTREAM_TOOLS_BENCH_FIGURES_H_
#define COLDSTREAM_TOOLS_BENCH_FIGURES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tools/bench_measurement.h"
#include "tools/spread.h"

namespace coldstream {

enum class Limit {
  kDisk,
  kUpload,
  kMemory,      // the computation, at the rate memory delivers weights
  kArithmetic,  // the computation, with memory to spare
  kCompute,     // the computation; no ceiling says which of the two
  kTurns,       // the links wait for each other in turns
};
const char* LimitName(Limit limit);

struct PhaseFigures {
  PhaseSample total;         // of all measured runs
  Spread tokens_per_second;  // over the runs

  // The reads of cold units; nullopt where every unit is resident.
  std::optional<double> read_rate;       // while reading
  std::optional<double> wall_read_rate;  // over all of the time
  // Of the ceiling; nullopt also where the reads are not disk reads.
  std::optional<double> disk_share_of_ceiling;  // of read_rate
  std::optional<double> wall_disk_share_of_ceiling;
  std::optional<double> disagreement;  // of the three byte counts

  // Copies to a device; nullopt where there are none.
  std::optional<double> upload_rate;  // while copying
  std::optional<double> wall_upload_rate;
  std::optional<double> upload_share_of_ceiling;  // of upload_rate
  std::optional<double> wall_upload_share_of_ceiling;
  std::optional<double> upload_busy;

  // Weights touched while computing.
  std::optional<double> memory_rate;
  std::optional<double> memory_share_of_ceiling;

  std::optional<double> disk_busy;
  std::optional<double> disk_idle;  // nothing asked of it: slots full
  std::optional<double> compute_busy;
  std::optional<double> compute_waited;  // for weights
  std::optional<Limit> limited_by;
};

struct BenchFigures {
  std::optional<PhaseFigures> prompt;  // nullopt: not measured
  std::optional<PhaseFigures> generation;
  // Why the rates are not the disk's ("..."), empty if they are or nothing was
  // read.
  std::string not_disk_speed;
  // What others read from the devices meanwhile; nullopt where it is not known
  // or less than a hundredth of what we read.
  std::optional<uint64_t> read_by_others;
};

BenchFigures FiguresOf(const BenchMeasurement& measurement);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BENCH_FIGURES_H_
