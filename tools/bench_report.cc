#include "tools/bench_report.h"

#include <functional>
#include <optional>
#include <string_view>

#include "absl/strings/str_format.h"
#include "tools/bench_figures.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

constexpr char kNothing[] = "-";
// A disagreement of more than this has no use for percents.
constexpr double kSeveral = 10;
// Of the ceiling: from here on another setting gains little.
constexpr double kNearCeiling = 0.9;

std::string Percent(std::optional<double> share) {
  return share ? absl::StrFormat("%.1f %%", 100 * *share) : kNothing;
}

// "1.45 (97 %)", the latter of the ceiling.
std::string RateCell(std::optional<double> rate, std::optional<double> share) {
  if (!rate) return kNothing;
  std::string cell = absl::StrFormat("%.2f", *rate / 1e9);
  if (share) cell += absl::StrFormat(" (%.0f %%)", 100 * *share);
  return cell;
}

// More digits for slower models.
std::string Speed(double tokens_per_second) {
  const int digits = tokens_per_second < 10    ? 3
                     : tokens_per_second < 100 ? 2
                                               : 1;
  return absl::StrFormat("%.*f", digits, tokens_per_second);
}

std::string SizeCell(std::optional<uint64_t> bytes) {
  return bytes ? FormatByteSize(*bytes) : kNothing;
}

// Lines "what   prompt   generation".
class Table {
 public:
  explicit Table(const BenchFigures& figures) : figures_(figures) {}

  using Cell = std::function<std::string(const PhaseFigures& phase)>;
  void Row(std::string_view what, const Cell& cell) {
    const auto text = [&](const std::optional<PhaseFigures>& phase) {
      return phase ? cell(*phase) : kNothing;
    };
    Line(what, text(figures_.prompt), text(figures_.generation));
  }
  void Line(std::string_view what, const std::string& prompt,
            const std::string& generation) {
    text_ += absl::StrFormat("%-30s%18s%18s\n", std::string(what), prompt,
                             generation);
  }
  const std::string& text() const { return text_; }

 private:
  const BenchFigures& figures_;
  std::string text_;
};

std::string CacheLine(const BenchMeasurement& m) {
  std::string state;
  switch (m.cache) {
    case CacheState::kAsFound:
      state = "as found";
      break;
    case CacheState::kCold:
      state = "cold, dropped before each run";
      break;
    case CacheState::kWarm:
      state = "warm, files read in before the warm-up";
      break;
  }
  if (!m.cached_before || !m.cached_after)
    return state + "; the kernel does not tell what it holds";
  return absl::StrFormat(
      "%s; held %.1f %% of the model's files before the first measured run, "
      "%.1f %% after the last",
      state, 100 * *m.cached_before, 100 * *m.cached_after);
}

std::string SettingText(const BenchMeasurement& m) {
  std::string text = absl::StrFormat(
      "model       %s (%s), %s of weights a pass: %s resident, %s read\n",
      m.model, m.architecture, FormatByteSize(m.weight_bytes),
      FormatByteSize(m.plan.resident_bytes),
      FormatByteSize(m.plan.pass_read_bytes));
  text +=
      absl::StrFormat("memory      %s at peak of --ram %s; %d slots of %s\n",
                      FormatByteSize(m.peak_rss), FormatByteSize(m.plan.budget),
                      m.plan.slot_count, FormatByteSize(m.plan.slot_bytes));
  if (m.vram) {
    text += absl::StrFormat(
        "device      %s: %s of --vram %s, %s resident, %d slots of %s; %s "
        "uploaded a pass; staging %s, %s of host memory pinned\n",
        m.device, FormatByteSize(m.vram->total()),
        FormatByteSize(m.vram->budget), FormatByteSize(m.vram->resident_bytes),
        m.vram->slot_count, FormatByteSize(m.vram->slot_bytes),
        FormatByteSize(m.vram->pass_read_bytes),
        FormatByteSize(m.plan.fixed.staging), FormatByteSize(m.pinned_bytes));
    if (m.split)
      text += absl::StrFormat("CPU         %s\n", SplitText(m.split->choice));
  } else if (!m.device_fallback.empty()) {
    text += "device      " + m.device_fallback + "\n";
  }
  text += absl::StrFormat(
      "disk        %s; %s, %s, %d reads of %s in flight, prefetch depth %d "
      "(%s)\n",
      m.disk, m.io_backend, m.direct ? "direct" : "buffered", m.io_depth,
      FormatByteSize(m.io_chunk), m.prefetch_depth,
      SettingsSourceName(m.settings));
  text += "page cache  " + CacheLine(m) + "\n";
  text += absl::StrFormat(
      "runs        %d measured after %d of warm-up, whose first pass loads the "
      "resident weights\n"
      "            %s%d prompt tokens, %d a pass; then %d generated; %s, %d "
      "threads\n",
      m.runs.size(), m.warmup,
      m.sequences > 1 ? absl::StrFormat("%d sequences of ", m.sequences) : "",
      m.prompt_tokens, m.batch_tokens, m.generated_tokens, m.isa, m.threads);
  return text;
}

void AddSpeedRows(Table* table) {
  table->Line("", "prompt", "generation");
  table->Row("tok/s, median", [](const PhaseFigures& phase) {
    return Speed(phase.tokens_per_second.median);
  });
  table->Row("  best", [](const PhaseFigures& phase) {
    return Speed(phase.tokens_per_second.most);
  });
  table->Row("  least .. most", [](const PhaseFigures& phase) {
    return Speed(phase.tokens_per_second.least) + " .. " +
           Speed(phase.tokens_per_second.most);
  });
  table->Row("  standard deviation", [](const PhaseFigures& phase) {
    const std::optional<double> deviation = phase.tokens_per_second.deviation;
    return deviation ? Speed(*deviation) : kNothing;
  });
  table->Row("passes, all runs", [](const PhaseFigures& phase) {
    return std::to_string(phase.total.used.passes);
  });
}

void AddCountRows(Table* table) {
  table->Row("bytes read, our count", [](const PhaseFigures& phase) {
    return FormatByteSize(phase.total.read.reader);
  });
  table->Row("  /proc/self/io", [](const PhaseFigures& phase) {
    return SizeCell(phase.total.read.process);
  });
  table->Row("  block device", [](const PhaseFigures& phase) {
    return SizeCell(phase.total.read.device);
  });
  table->Row("  largest disagreement",
             [](const PhaseFigures& phase) -> std::string {
               if (!phase.disagreement) return kNothing;
               if (*phase.disagreement > kSeveral) return "several times";
               return absl::StrFormat("%.2f %%", 100 * *phase.disagreement);
             });
}

void AddUploadRows(Table* table) {
  table->Row("upload GB/s, while copying", [](const PhaseFigures& phase) {
    return RateCell(phase.upload_rate, phase.upload_share_of_ceiling);
  });
  table->Row("  over wall time", [](const PhaseFigures& phase) {
    return RateCell(phase.wall_upload_rate, phase.wall_upload_share_of_ceiling);
  });
  table->Row("  busy", [](const PhaseFigures& phase) {
    return Percent(phase.upload_busy);
  });
}

void AddLinkRows(bool is_disk, bool device, Table* table) {
  table->Row(
      is_disk ? "disk GB/s, while reading" : "NOT DISK: GB/s while reading",
      [](const PhaseFigures& phase) {
        return RateCell(phase.read_rate, phase.disk_share_of_ceiling);
      });
  table->Row("  over wall time", [](const PhaseFigures& phase) {
    return RateCell(phase.wall_read_rate, phase.wall_disk_share_of_ceiling);
  });
  if (device) AddUploadRows(table);
  table->Row(
      device ? "VRAM GB/s, while computing" : "RAM GB/s, while computing",
      [](const PhaseFigures& phase) {
        return RateCell(phase.memory_rate, phase.memory_share_of_ceiling);
      });
  table->Row(
      is_disk ? "disk busy" : "reads in flight",
      [](const PhaseFigures& phase) { return Percent(phase.disk_busy); });
  table->Row("  idle, slots full", [](const PhaseFigures& phase) {
    return Percent(phase.disk_idle);
  });
  table->Row("compute busy", [](const PhaseFigures& phase) {
    return Percent(phase.compute_busy);
  });
  table->Row("  waited for weights", [](const PhaseFigures& phase) {
    return Percent(phase.compute_waited);
  });
  table->Row("limited by", [&](const PhaseFigures& phase) -> std::string {
    if (!phase.limited_by) return kNothing;
    if (*phase.limited_by == Limit::kDisk && !is_disk) return "reads";
    return LimitName(*phase.limited_by);
  });
}

// "1.51 GB/s (4 MiB x 4)"
std::string ProbeText(const std::optional<DiskProbe>& probe) {
  if (!probe) return kNothing;
  return absl::StrFormat("%.2f GB/s (%s x %d)", probe->bytes_per_second / 1e9,
                         FormatByteSize(probe->chunk_bytes), probe->depth);
}

std::string GigabytesText(std::optional<double> bytes_per_second) {
  if (!bytes_per_second) return kNothing;
  return absl::StrFormat("%.2f GB/s", *bytes_per_second / 1e9);
}

std::string CeilingText(const BenchMeasurement& m) {
  const DiskCeiling& disk = m.disk_ceiling;
  std::string text =
      absl::StrFormat("ceilings    disk %s before, %s after the runs; %s %s\n",
                      ProbeText(disk.before), ProbeText(disk.after),
                      m.vram ? "VRAM" : "RAM", GigabytesText(m.memory_ceiling));
  if (m.vram) {
    const auto rate = [](const std::optional<UploadProbe>& probe) {
      return GigabytesText(probe ? std::optional(probe->bytes_per_second)
                                 : std::nullopt);
    };
    text += absl::StrFormat("            upload %s before, %s after the runs\n",
                            rate(m.upload_ceiling.before),
                            rate(m.upload_ceiling.after));
  }
  for (const std::optional<DiskProbe>& probe : {disk.before, disk.after}) {
    if (!probe || probe->doubt.empty()) continue;
    return text + "            not a disk's: " + probe->doubt + "\n";
  }
  return text;
}

// What could be tried, by phase that calls for it.
std::string AdviceText(const BenchMeasurement& m, const BenchFigures& figures) {
  bool turns = false;
  bool below_ceiling = false;
  for (const auto& phase : {figures.prompt, figures.generation}) {
    if (!phase) continue;
    turns = turns || phase->limited_by == Limit::kTurns;
    below_ceiling = below_ceiling ||
                    (phase->limited_by == Limit::kDisk &&
                     phase->disk_share_of_ceiling.value_or(1) < kNearCeiling);
  }
  // On a shared disk the ceiling says nothing of ours.
  if (figures.read_by_others) below_ceiling = false;
  std::string text;
  if (turns) {
    text += absl::StrFormat(
        "turns: reads, copies and computation wait for each other; try a "
        "--prefetch-depth above %d\n",
        m.prefetch_depth);
  }
  if (below_ceiling) {
    text +=
        "the disk limits below its ceiling; try the ceiling's chunk and depth "
        "as --io-chunk and --io-depth, and a larger --prefetch-depth\n";
  }
  return text;
}

std::string NotesText(const BenchMeasurement& m, const BenchFigures& figures) {
  std::string text;
  if (!figures.not_disk_speed.empty())
    text += "not disk speed: " + figures.not_disk_speed + "\n";
  if (figures.read_by_others && m.plan.pass_read_bytes > 0) {
    text += absl::StrFormat(
        "a shared disk: others read %s from it during the measured runs\n",
        FormatByteSize(*figures.read_by_others));
  }
  if (m.plan.pass_read_bytes == 0) {
    const bool uploads = m.vram && m.vram->pass_read_bytes > 0;
    text += uploads ? "no weights come from disk" : "all weights are resident";
    text += ": measured passes read rows of the embedding table alone\n";
  }
  return text + AdviceText(m, figures);
}

}  // namespace

std::string BenchText(const BenchMeasurement& measurement) {
  const BenchFigures figures = FiguresOf(measurement);
  Table table(figures);
  AddSpeedRows(&table);
  AddCountRows(&table);
  AddLinkRows(figures.not_disk_speed.empty(), measurement.vram.has_value(),
              &table);
  return SettingText(measurement) + "\n" + table.text() + "\n" +
         CeilingText(measurement) + NotesText(measurement, figures);
}

}  // namespace coldstream
