// BenchCsv of tools/bench_report.h.
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "tools/bench_figures.h"
#include "tools/bench_report.h"

namespace coldstream {
namespace {

// One row, and the header of its columns beside it.
class Row {
 public:
  void Add(std::string_view name, std::string_view value) {
    Append(name, &header_);
    Append(value, &values_);
  }
  void Add(std::string_view name, int64_t value) {
    Add(name, std::string_view(std::to_string(value)));
  }
  void Add(std::string_view name, std::optional<uint64_t> value) {
    Add(name, value ? std::string_view(std::to_string(*value)) : "");
  }
  void AddNumber(std::string_view name, double value) {
    Add(name, std::string_view(absl::StrFormat("%.6g", value)));
  }
  std::string header() const { return header_ + "\n"; }
  std::string values() const { return values_ + "\n"; }

 private:
  static void Append(std::string_view field, std::string* line) {
    if (!line->empty()) *line += ',';
    if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
      *line += field;
      return;
    }
    *line += '"';
    for (const char c : field) {
      if (c == '"') *line += '"';
      *line += c;
    }
    *line += '"';
  }

  std::string header_;
  std::string values_;
};

void AddPhase(const std::string& name, const PhaseSample& sample, Row* row) {
  const EngineStats& used = sample.used;
  row->Add(name + "_tokens", sample.tokens);
  row->AddNumber(name + "_seconds", sample.seconds);
  row->AddNumber(name + "_tokens_per_second", sample.tokens_per_second());
  row->Add(name + "_passes", used.passes);
  row->Add(name + "_bytes_read", std::optional(sample.read.reader));
  row->Add(name + "_bytes_proc_self_io", sample.read.process);
  row->Add(name + "_bytes_block_device", sample.read.device);
  row->AddNumber(name + "_run_seconds", used.run_seconds);
  row->AddNumber(name + "_disk_busy_seconds", used.disk_busy_seconds);
  row->Add(name + "_bytes_uploaded", std::optional(used.bytes_uploaded));
  row->AddNumber(name + "_upload_busy_seconds", used.upload_busy_seconds);
  row->AddNumber(name + "_compute_seconds", used.compute_seconds);
  row->AddNumber(name + "_stall_seconds", used.stall_seconds);
}

Row RowOf(const BenchMeasurement& m, int64_t run,
          const std::string& not_disk_speed) {
  Row row;
  row.Add("run", run);
  row.Add("model", m.model);
  row.Add("weights_bytes", std::optional(m.weight_bytes));
  row.Add("ram_bytes", std::optional(m.plan.budget));
  row.Add("resident_bytes", std::optional(m.plan.resident_bytes));
  row.Add("pass_read_bytes", std::optional(m.plan.pass_read_bytes));
  row.Add("device", m.device);
  row.Add("vram_bytes", m.vram ? std::optional(m.vram->budget) : std::nullopt);
  row.Add("upload_bytes",
          m.vram ? std::optional(m.vram->pass_read_bytes) : std::nullopt);
  row.Add("sequences", m.sequences);
  row.Add("threads", int64_t{m.threads});
  row.Add("isa", m.isa);
  row.Add("io_backend", m.io_backend);
  row.Add("direct_io", m.direct ? "true" : "false");
  row.Add("io_depth", int64_t{m.io_depth});
  row.Add("io_chunk", std::optional(m.io_chunk));
  row.Add("prefetch_depth", int64_t{m.prefetch_depth});
  row.Add("page_cache", CacheStateName(m.cache));
  row.Add("not_disk_speed", not_disk_speed);
  const BenchRun& measured = m.runs[static_cast<size_t>(run - 1)];
  AddPhase("prompt", measured.prompt, &row);
  AddPhase("generation", measured.generation, &row);
  return row;
}

}  // namespace

std::string BenchCsv(const BenchMeasurement& measurement) {
  const std::string not_disk_speed = FiguresOf(measurement).not_disk_speed;
  std::string text;
  const auto runs = static_cast<int64_t>(measurement.runs.size());
  for (int64_t run = 1; run <= runs; ++run) {
    const Row row = RowOf(measurement, run, not_disk_speed);
    if (text.empty()) text = row.header();
    text += row.values();
  }
  return text;
}

}  // namespace coldstream
