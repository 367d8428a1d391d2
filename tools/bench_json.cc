// BenchJson of tools/bench_report.h.
#include <optional>
#include <string>
#include <vector>

#include "tools/bench_figures.h"
#include "tools/bench_report.h"

namespace coldstream {
namespace {

using Json = nlohmann::ordered_json;

template <typename Number>
Json OrNull(const std::optional<Number>& value) {
  if (!value) return nullptr;
  return *value;
}

Json GigabytesOrNull(std::optional<double> bytes_per_second) {
  if (!bytes_per_second) return nullptr;
  return *bytes_per_second / 1e9;
}

Json PercentOrNull(std::optional<double> share) {
  if (!share) return nullptr;
  return *share * 100;
}

Json CountsJson(const ReadCounts& read) {
  Json json;
  json["reader"] = read.reader;
  json["proc_self_io"] = OrNull(read.process);
  json["block_device"] = OrNull(read.device);
  return json;
}

Json SampleJson(const PhaseSample& sample) {
  Json json;
  json["tokens_per_second"] = sample.tokens_per_second();
  json["seconds"] = sample.seconds;
  json["passes"] = sample.used.passes;
  json["bytes_read"] = CountsJson(sample.read);
  json["run_seconds"] = sample.used.run_seconds;
  json["disk_busy_seconds"] = sample.used.disk_busy_seconds;
  json["bytes_uploaded"] = sample.used.bytes_uploaded;
  json["upload_busy_seconds"] = sample.used.upload_busy_seconds;
  json["compute_seconds"] = sample.used.compute_seconds;
  json["cpu_seconds"] = sample.used.cpu_seconds;
  json["cpu_units"] = sample.used.cpu_units;
  json["stall_seconds"] = sample.used.stall_seconds;
  return json;
}

Json SpreadJson(const Spread& spread) {
  Json json;
  json["median"] = spread.median;
  json["best"] = spread.most;
  json["min"] = spread.least;
  json["max"] = spread.most;
  json["standard_deviation"] = OrNull(spread.deviation);
  return json;
}

// Disk rates are null where the reads are not the disk's; read rates never
// claim to be.
void AddRates(const PhaseFigures& figures, bool is_disk, bool device,
              Json* json) {
  const auto if_disk = [&](std::optional<double> rate) {
    return GigabytesOrNull(is_disk ? rate : std::nullopt);
  };
  (*json)["read_GBps"] = GigabytesOrNull(figures.read_rate);
  (*json)["disk_GBps"] = if_disk(figures.read_rate);
  (*json)["disk_GBps_over_wall_time"] = if_disk(figures.wall_read_rate);
  (*json)["disk_percent_of_ceiling"] =
      PercentOrNull(figures.disk_share_of_ceiling);
  (*json)["disk_percent_of_ceiling_over_wall_time"] =
      PercentOrNull(figures.wall_disk_share_of_ceiling);
  (*json)["upload_GBps"] = GigabytesOrNull(figures.upload_rate);
  (*json)["upload_GBps_over_wall_time"] =
      GigabytesOrNull(figures.wall_upload_rate);
  (*json)["upload_percent_of_ceiling"] =
      PercentOrNull(figures.upload_share_of_ceiling);
  (*json)["upload_percent_of_ceiling_over_wall_time"] =
      PercentOrNull(figures.wall_upload_share_of_ceiling);
  const std::string memory = device ? "vram" : "ram";
  (*json)[memory + "_GBps"] = GigabytesOrNull(figures.memory_rate);
  (*json)[memory + "_percent_of_ceiling"] =
      PercentOrNull(figures.memory_share_of_ceiling);
}

Json PhaseJson(const std::optional<PhaseFigures>& figures,
               const BenchMeasurement& m, PhaseSample BenchRun::*phase,
               bool is_disk) {
  if (!figures) return nullptr;
  Json json;
  json["tokens"] = (m.runs.front().*phase).tokens;
  json["tokens_per_second"] = SpreadJson(figures->tokens_per_second);
  json["passes"] = figures->total.used.passes;
  json["bytes_read"] = CountsJson(figures->total.read);
  json["bytes_disagreement_percent"] = PercentOrNull(figures->disagreement);
  AddRates(*figures, is_disk, m.vram.has_value(), &json);
  json["disk_busy_percent"] = PercentOrNull(figures->disk_busy);
  json["disk_idle_percent"] = PercentOrNull(figures->disk_idle);
  json["upload_busy_percent"] = PercentOrNull(figures->upload_busy);
  json["compute_busy_percent"] = PercentOrNull(figures->compute_busy);
  json["compute_waited_percent"] = PercentOrNull(figures->compute_waited);
  json["limited_by"] = nullptr;
  if (figures->limited_by) json["limited_by"] = LimitName(*figures->limited_by);
  json["runs"] = Json::array();
  for (const BenchRun& run : m.runs)
    json["runs"].push_back(SampleJson(run.*phase));
  return json;
}

Json SettingJson(const BenchMeasurement& m) {
  Json json;
  json["model"] = m.model;
  json["architecture"] = m.architecture;
  json["weights_bytes"] = m.weight_bytes;
  json["ram_bytes"] = m.plan.budget;
  json["resident_bytes"] = m.plan.resident_bytes;
  json["slot_bytes"] = m.plan.slots_bytes();
  json["pass_read_bytes"] = m.plan.pass_read_bytes;
  json["peak_rss_bytes"] = m.peak_rss;
  json["device"] = m.device;
  json["device_fallback"] = nullptr;
  if (!m.device_fallback.empty()) json["device_fallback"] = m.device_fallback;
  json["vram"] = nullptr;
  if (m.vram) {
    json["vram"] = {{"budget_bytes", m.vram->budget},
                    {"planned_bytes", m.vram->total()},
                    {"resident_bytes", m.vram->resident_bytes},
                    {"slots", m.vram->slot_count},
                    {"slot_bytes", m.vram->slot_bytes},
                    {"upload_bytes_per_pass", m.vram->pass_read_bytes},
                    {"staging_bytes", m.plan.fixed.staging},
                    {"pinned_bytes", m.pinned_bytes}};
  }
  json["split"] = SplitJson(m.split);
  json["prompt_tokens"] = m.prompt_tokens;
  json["generated_tokens"] = m.generated_tokens;
  json["batch_tokens"] = m.batch_tokens;
  json["sequences"] = m.sequences;
  json["kv_bytes"] = (m.vram ? *m.vram : m.plan).fixed.kv;
  json["warmup"] = m.warmup;
  json["runs"] = m.runs.size();
  json["threads"] = m.threads;
  json["isa"] = m.isa;
  json["disk"] = m.disk;
  json["io_backend"] = m.io_backend;
  json["direct_io"] = m.direct;
  json["io_depth"] = m.io_depth;
  json["io_chunk"] = m.io_chunk;
  json["prefetch_depth"] = m.prefetch_depth;
  json["settings"] = SettingsSourceName(m.settings);
  json["page_cache"] = {
      {"state", CacheStateName(m.cache)},
      {"cached_percent_before", PercentOrNull(m.cached_before)},
      {"cached_percent_after", PercentOrNull(m.cached_after)}};
  return json;
}

Json ProbeJson(const std::optional<DiskProbe>& probe) {
  if (!probe) return nullptr;
  Json json;
  json["GBps"] = probe->bytes_per_second / 1e9;
  json["io_chunk"] = probe->chunk_bytes;
  json["io_depth"] = probe->depth;
  json["doubt"] = nullptr;
  if (!probe->doubt.empty()) json["doubt"] = probe->doubt;
  return json;
}

}  // namespace

nlohmann::ordered_json BenchJson(const BenchMeasurement& measurement) {
  const BenchFigures figures = FiguresOf(measurement);
  const bool is_disk = figures.not_disk_speed.empty();
  Json json = SettingJson(measurement);
  json["not_disk_speed"] = nullptr;
  if (!is_disk) json["not_disk_speed"] = figures.not_disk_speed;
  json["bytes_read_by_others"] = OrNull(figures.read_by_others);
  json["ceilings"] = {
      {"disk_GBps", GigabytesOrNull(measurement.disk_ceiling.best())},
      {"disk_before", ProbeJson(measurement.disk_ceiling.before)},
      {"disk_after", ProbeJson(measurement.disk_ceiling.after)},
      {"upload_GBps", GigabytesOrNull(measurement.upload_ceiling.best())},
      {measurement.vram ? "vram_GBps" : "ram_GBps",
       GigabytesOrNull(measurement.memory_ceiling)}};
  json["prompt"] =
      PhaseJson(figures.prompt, measurement, &BenchRun::prompt, is_disk);
  json["generation"] = PhaseJson(figures.generation, measurement,
                                 &BenchRun::generation, is_disk);
  return json;
}

}  // namespace coldstream
