#include "tools/tune_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_units.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

constexpr double kBarWidth = 30;
constexpr double kGB = 1e9;

std::string Bar(double value, double best) {
  if (best <= 0) return "";
  const double length = std::round(kBarWidth * std::min(1.0, value / best));
  return std::string(static_cast<size_t>(std::max(0.0, length)), '#');
}

// As --io-chunk takes it: "512k", "2M".
std::string ChunkText(uint64_t bytes) {
  if (bytes % (kKiB * kKiB) == 0)
    return absl::StrFormat("%dM", bytes / kKiB / kKiB);
  return absl::StrFormat("%dk", bytes / kKiB);
}

const char* BackendWord(IoBackendKind backend) {
  switch (backend) {
    case IoBackendKind::kAuto:
      return "auto";
    case IoBackendKind::kUring:
      return "uring";
    case IoBackendKind::kPread:
      return "pread";
  }
  return "";
}

const char* DirectWord(DirectMode direct) {
  switch (direct) {
    case DirectMode::kAuto:
      return "auto";
    case DirectMode::kOn:
      return "on";
    case DirectMode::kOff:
      return "off";
  }
  return "";
}

// "auto", "pread", "auto, page cache": how a row's files were read.
std::string ModeText(const TuneMode& mode) {
  return absl::StrCat(BackendWord(mode.backend),
                      mode.direct == DirectMode::kOff ? ", page cache" : "");
}

const char* BuffersText(const DiskPoint& point) {
  if (point.buffers == ProbeBuffers::kSlots)
    return point.registered ? "registered" : "not registered";
  return point.buffers == ProbeBuffers::kPlain ? "plain" : "4 KiB pages";
}

std::string ProbeText(const DiskProbe& probe) {
  double best = 0;
  for (const DiskPoint& point : probe.points)
    best = std::max(best, point.bytes_per_second);
  std::string text = absl::StrFormat(
      "\nThe disk alone: %.2f GB/s (%s, %s)\n", probe.bytes_per_second / kGB,
      probe.backend, probe.direct ? "direct" : "through the page cache");
  if (!probe.doubt.empty())
    absl::StrAppend(&text, "  in doubt: ", probe.doubt, "\n");
  absl::StrAppend(&text, "  chunk  depth  buffers          GB/s\n");
  for (const DiskPoint& point : probe.points) {
    absl::StrAppendFormat(&text, "  %5s  %5d  %-14s %6.2f  %s\n",
                          ChunkText(point.chunk_bytes), point.depth,
                          BuffersText(point), point.bytes_per_second / kGB,
                          Bar(point.bytes_per_second, best));
  }
  return text;
}

std::string RowText(const TuneMeasurement& tune, size_t index, double best) {
  const TuneEntry& entry = tune.result.curve[index];
  const TuneMode& mode = tune.space.modes[entry.point.mode];
  std::string row = absl::StrFormat(
      "  %8d  %5s  %8d  %-17s", entry.point.prefetch_depth,
      ChunkText(entry.point.chunk_bytes), entry.point.io_depth, ModeText(mode));
  if (entry.passes == 0) return absl::StrCat(row, "  cannot be had\n");
  absl::StrAppendFormat(
      &row, "%11s  %7.3f  %6.2f  %-30s", FormatByteSize(entry.memory_bytes),
      entry.passes_per_second(), entry.bytes_per_second() / kGB,
      Bar(entry.passes_per_second(), best));
  if (index == tune.result.chosen) absl::StrAppend(&row, "  <- chosen");
  if (mode.shown_only) absl::StrAppend(&row, "  not a choice");
  return row + "\n";
}

std::string CurveText(const TuneMeasurement& tune) {
  double best = 0;
  for (const TuneEntry& entry : tune.result.curve)
    best = std::max(best, entry.passes_per_second());
  std::string text =
      "\nThe model, in the order measured (the choice is by a last race of the "
      "fast ones, turn by turn):\n"
      "  prefetch  chunk  io-depth  io                     slots    tok/s    "
      "GB/s\n";
  for (size_t i = 0; i < tune.result.curve.size(); ++i)
    absl::StrAppend(&text, RowText(tune, i, best));
  return text;
}

std::string BudgetText(const TunedKey& key) {
  std::string text = FormatByteSize(key.ram_bytes);
  if (!key.device.empty()) {
    absl::StrAppend(&text, " and ", FormatByteSize(key.vram_bytes), " of ",
                    key.device);
  }
  return text;
}

std::string ChoiceText(const TuneMeasurement& tune, const TuneSaved& saved) {
  const TunedSettings chosen = tune.Chosen();
  const TuneEntry& start = tune.result.curve.front();
  std::string text = absl::StrFormat(
      "\nChosen: --prefetch-depth %d --io-depth %d --io-chunk %s --io %s: "
      "%.3f tok/s (the start had %.3f; a visit varied by %.1f %%)\n",
      chosen.prefetch_depth, chosen.io_depth, ChunkText(chosen.chunk_bytes),
      BackendWord(chosen.backend), chosen.tokens_per_second,
      start.passes_per_second(), 100 * tune.result.noise);
  if (tune.result.out_of_time)
    absl::StrAppend(&text,
                    "The time ended the search; --seconds gives more.\n");
  if (saved.dry_run) {
    absl::StrAppend(&text, "Not written anywhere (--dry-run).\n");
  } else if (saved.written) {
    absl::StrAppendFormat(
        &text,
        "Written to %s for this model, %s, %d threads and this disk;\n"
        "later runs with a budget near that take it.\n",
        saved.path, BudgetText(tune.key), tune.key.threads);
  } else {
    absl::StrAppend(&text, "Not written: no profile is kept.\n");
  }
  return text;
}

nlohmann::ordered_json ProbeJson(const DiskProbe& probe) {
  nlohmann::ordered_json json = {{"bytes_per_second", probe.bytes_per_second},
                                 {"backend", probe.backend},
                                 {"direct", probe.direct},
                                 {"registered", probe.registered},
                                 {"doubt", probe.doubt}};
  json["points"] = nlohmann::ordered_json::array();
  for (const DiskPoint& point : probe.points) {
    json["points"].push_back({{"chunk_bytes", point.chunk_bytes},
                              {"depth", point.depth},
                              {"buffers", ProbeBuffersName(point.buffers)},
                              {"registered", point.registered},
                              {"bytes_per_second", point.bytes_per_second}});
  }
  return json;
}

nlohmann::ordered_json RowJson(const TuneMeasurement& tune, size_t index) {
  const TuneEntry& entry = tune.result.curve[index];
  const TuneMode& mode = tune.space.modes[entry.point.mode];
  nlohmann::ordered_json json = {{"prefetch_depth", entry.point.prefetch_depth},
                                 {"io_depth", entry.point.io_depth},
                                 {"io_chunk", entry.point.chunk_bytes},
                                 {"io", BackendWord(mode.backend)},
                                 {"direct", DirectWord(mode.direct)},
                                 {"passes", entry.passes}};
  if (entry.passes == 0) {
    json["error"] = MessageOf(entry.status);
    return json;
  }
  json["slots_bytes"] = entry.memory_bytes;
  json["tokens_per_second"] = entry.passes_per_second();
  json["bytes_per_second"] = entry.bytes_per_second();
  json["dropped"] = entry.dropped;
  json["shown_only"] = mode.shown_only;
  json["chosen"] = index == tune.result.chosen;
  return json;
}

}  // namespace

std::string TuneText(const TuneMeasurement& tune, const TuneSaved& saved) {
  std::string text = absl::StrFormat(
      "%s: %s of weights, budget %s, %d threads, on %s\n", tune.model,
      FormatByteSize(tune.weight_bytes), BudgetText(tune.key), tune.key.threads,
      tune.disk.Describe());
  if (!tune.streams()) {
    absl::StrAppend(&text,
                    "All weights are resident at this budget: nothing streams "
                    "and there is nothing to tune.\n");
    return text;
  }
  absl::StrAppend(&text, "A pass reads ", FormatByteSize(tune.pass_read_bytes),
                  " from disk");
  if (!tune.key.device.empty()) {
    absl::StrAppend(&text, " and uploads ",
                    FormatByteSize(tune.pass_upload_bytes), " to ",
                    tune.key.device);
  }
  absl::StrAppend(&text, ".\n");
  if (tune.probe) absl::StrAppend(&text, ProbeText(*tune.probe));
  absl::StrAppend(&text, CurveText(tune), ChoiceText(tune, saved));
  return text;
}

nlohmann::ordered_json TuneJson(const TuneMeasurement& tune,
                                const TuneSaved& saved) {
  nlohmann::ordered_json json = {{"model", tune.model},
                                 {"model_key", tune.key.model},
                                 {"disk", tune.disk.Describe()},
                                 {"disk_key", tune.key.disk},
                                 {"ram_bytes", tune.key.ram_bytes},
                                 {"threads", tune.key.threads},
                                 {"weight_bytes", tune.weight_bytes},
                                 {"pass_read_bytes", tune.pass_read_bytes}};
  json["device"] = nullptr;
  if (!tune.key.device.empty()) {
    json["device"] = tune.key.device;
    json["vram_bytes"] = tune.key.vram_bytes;
    json["pass_upload_bytes"] = tune.pass_upload_bytes;
  }
  json["probe"] = tune.probe ? ProbeJson(*tune.probe) : nullptr;
  json["curve"] = nlohmann::ordered_json::array();
  json["chosen"] = nullptr;
  if (!tune.streams()) return json;
  for (size_t i = 0; i < tune.result.curve.size(); ++i)
    json["curve"].push_back(RowJson(tune, i));
  json["chosen"] = RowJson(tune, tune.result.chosen);
  json["noise"] = tune.result.noise;
  json["out_of_time"] = tune.result.out_of_time;
  json["dry_run"] = saved.dry_run;
  json["written"] = saved.written;
  json["profile"] = saved.path;
  return json;
}

}  // namespace coldstream
