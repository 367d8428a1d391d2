#include "tools/bench_figures.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

// The kernel's count may be this much smaller than ours: sectors, read-ahead.
constexpr double kSameBytes = 0.99;
// One part in so many of what we read.
constexpr uint64_t kNoticeableOthers = 100;
// A link that works this share of the time is never waited for by itself.
constexpr double kAlwaysBusy = 0.85;
// Of the ceiling: what kernels that wait for memory reach, with their
// arithmetic between the loads.
constexpr double kMemoryBound = 0.6;

std::optional<double> Ratio(double amount, double of) {
  if (of <= 0) return std::nullopt;
  return amount / of;
}

std::optional<double> Ratio(std::optional<double> amount,
                            std::optional<double> of) {
  if (!amount || !of) return std::nullopt;
  return Ratio(*amount, *of);
}

Limit LimitOf(const PhaseFigures& figures) {
  const double disk = figures.disk_busy.value_or(0);
  const double upload = figures.upload_busy.value_or(0);
  const double compute = figures.compute_busy.value_or(0);
  const bool streams = figures.read_rate || figures.upload_rate;
  if (std::max({disk, upload, compute}) < kAlwaysBusy && streams)
    return Limit::kTurns;
  if (disk > std::max(upload, compute)) return Limit::kDisk;
  if (upload > compute) return Limit::kUpload;
  if (!figures.memory_share_of_ceiling) return Limit::kCompute;
  return *figures.memory_share_of_ceiling >= kMemoryBound ? Limit::kMemory
                                                          : Limit::kArithmetic;
}

void AddDiskFigures(const BenchMeasurement& measurement, bool is_disk,
                    PhaseFigures* figures) {
  const EngineStats& used = figures->total.used;
  const auto bytes = static_cast<double>(used.bytes_from_disk);
  figures->read_rate = Ratio(bytes, used.disk_busy_seconds);
  figures->wall_read_rate = Ratio(bytes, used.run_seconds);
  figures->disk_busy = Ratio(used.disk_busy_seconds, used.run_seconds);
  if (figures->disk_busy)
    figures->disk_idle = std::max(0.0, 1 - *figures->disk_busy);
  figures->disagreement = figures->total.read.Disagreement();
  if (!is_disk) return;
  const std::optional<double> ceiling = measurement.disk_ceiling.best();
  figures->disk_share_of_ceiling = Ratio(figures->read_rate, ceiling);
  figures->wall_disk_share_of_ceiling = Ratio(figures->wall_read_rate, ceiling);
}

void AddUploadFigures(const BenchMeasurement& measurement,
                      PhaseFigures* figures) {
  const EngineStats& used = figures->total.used;
  const auto bytes = static_cast<double>(used.bytes_uploaded);
  figures->upload_rate = Ratio(bytes, used.upload_busy_seconds);
  figures->wall_upload_rate = Ratio(bytes, used.run_seconds);
  figures->upload_busy = Ratio(used.upload_busy_seconds, used.run_seconds);
  const std::optional<double> ceiling = measurement.upload_ceiling.best();
  figures->upload_share_of_ceiling = Ratio(figures->upload_rate, ceiling);
  figures->wall_upload_share_of_ceiling =
      Ratio(figures->wall_upload_rate, ceiling);
}

std::optional<PhaseFigures> FiguresOfPhase(const BenchMeasurement& measurement,
                                           PhaseSample BenchRun::*phase,
                                           bool is_disk) {
  PhaseFigures figures;
  std::vector<double> rates;
  for (const BenchRun& run : measurement.runs) {
    const PhaseSample& sample = run.*phase;
    // The counts that the kernel does not tell are missing in the sum as well.
    figures.total = rates.empty() ? sample : figures.total + sample;
    rates.push_back(sample.tokens_per_second());
  }
  if (figures.total.tokens == 0) return std::nullopt;
  figures.tokens_per_second = SpreadOf(rates);
  const EngineStats& used = figures.total.used;
  figures.compute_busy = Ratio(used.compute_seconds, used.run_seconds);
  figures.memory_rate = Ratio(static_cast<double>(used.passes) *
                                  static_cast<double>(measurement.weight_bytes),
                              used.compute_seconds);
  figures.memory_share_of_ceiling =
      Ratio(figures.memory_rate, measurement.memory_ceiling);
  const bool uploads =
      measurement.vram && measurement.vram->pass_read_bytes > 0;
  if (measurement.plan.pass_read_bytes > 0)
    AddDiskFigures(measurement, is_disk, &figures);
  if (uploads) AddUploadFigures(measurement, &figures);
  if (measurement.plan.pass_read_bytes > 0 || uploads)
    figures.compute_waited = Ratio(used.stall_seconds, used.run_seconds);
  figures.limited_by = LimitOf(figures);
  return figures;
}

ReadCounts ReadInAll(const BenchMeasurement& measurement) {
  std::optional<PhaseSample> total;
  for (const BenchRun& run : measurement.runs) {
    for (const PhaseSample& sample : {run.prompt, run.generation}) {
      if (sample.tokens == 0) continue;
      total = total ? *total + sample : sample;
    }
  }
  return total ? total->read : ReadCounts();
}

std::optional<uint64_t> ReadByOthers(const ReadCounts& read) {
  if (!read.device || !read.process || *read.device <= *read.process)
    return std::nullopt;
  const uint64_t others = *read.device - *read.process;
  if (others < read.reader / kNoticeableOthers) return std::nullopt;
  return others;
}

std::string WhyNotDiskSpeed(const BenchMeasurement& measurement,
                            const ReadCounts& read) {
  if (measurement.in_memory)
    return "the model lies in memory: " + measurement.disk;
  if (measurement.plan.pass_read_bytes == 0) return "";
  // The device's count is everybody's: only where there is no other.
  const std::optional<uint64_t> from_device =
      read.process ? read.process : read.device;
  const double share =
      from_device && read.reader > 0
          ? static_cast<double>(*from_device) / static_cast<double>(read.reader)
          : 1;
  if (share < kSameBytes) {
    return absl::StrFormat(
        "%.0f %% of the bytes read came from a device, the others from the "
        "page cache",
        100 * share);
  }
  if (!measurement.direct)
    return "reads go through the page cache, with its copy and read-ahead";
  return "";
}

}  // namespace

const char* LimitName(Limit limit) {
  switch (limit) {
    case Limit::kDisk:
      return "disk";
    case Limit::kUpload:
      return "upload";
    case Limit::kMemory:
      return "memory";
    case Limit::kArithmetic:
      return "arithmetic";
    case Limit::kCompute:
      return "computation";
    case Limit::kTurns:
      return "turns";
  }
  return "?";
}

BenchFigures FiguresOf(const BenchMeasurement& measurement) {
  BenchFigures figures;
  const ReadCounts read = ReadInAll(measurement);
  figures.not_disk_speed = WhyNotDiskSpeed(measurement, read);
  figures.read_by_others = ReadByOthers(read);
  const bool is_disk = figures.not_disk_speed.empty();
  figures.prompt = FiguresOfPhase(measurement, &BenchRun::prompt, is_disk);
  figures.generation =
      FiguresOfPhase(measurement, &BenchRun::generation, is_disk);
  return figures;
}

}  // namespace coldstream
