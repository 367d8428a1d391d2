#include "tools/run_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "tools/byte_size.h"
#include "tools/forecast.h"

namespace coldstream {
namespace {

// The rate, or null where nothing was measured.
nlohmann::ordered_json Rate(double amount, double seconds) {
  if (amount <= 0 || seconds <= 0) return nullptr;
  return amount / seconds;
}

// The first generated token belongs to the prompt's last pass.
double DecodedTokens(const SessionTimes& times) {
  return static_cast<double>(std::max<int64_t>(times.generated_tokens - 1, 0));
}

std::string Speed(const char* what, double tokens, double seconds) {
  if (tokens <= 0 || seconds <= 0) return "";
  return absl::StrFormat("%s %.0f tokens in %.2f s (%.2f tok/s)  ", what,
                         tokens, seconds, tokens / seconds);
}

double DiskRate(const EngineStats& stats) {
  if (stats.disk_busy_seconds <= 0) return 0;
  return static_cast<double>(stats.bytes_from_disk) / stats.disk_busy_seconds;
}

double UploadRate(const EngineStats& stats) {
  if (stats.upload_busy_seconds <= 0) return 0;
  return static_cast<double>(stats.bytes_uploaded) / stats.upload_busy_seconds;
}

EnginePlan PlanOf(const Engine& engine) {
  EnginePlan plan{engine.options(), engine.plan(), std::nullopt};
  if (engine.vram_plan() != nullptr) plan.vram = *engine.vram_plan();
  return plan;
}

// What the run was bound by: over the generation if there was one, else over
// the prompt. Shares are of that time; they overlap.
struct RunLimit {
  Link link = Link::kCompute;
  double disk_share = 0;
  double upload_share = 0;
  double compute_share = 0;
};

std::optional<RunLimit> FindLimit(const EngineStats& stats, double seconds) {
  if (seconds <= 0 || stats.passes == 0) return std::nullopt;
  const PassPrediction busy = {.seconds = seconds,
                               .disk_seconds = stats.disk_busy_seconds,
                               .compute_seconds = stats.compute_seconds,
                               .upload_seconds = stats.upload_busy_seconds};
  return RunLimit{.link = busy.binding(),
                  .disk_share = busy.disk_seconds / seconds,
                  .upload_share = busy.upload_seconds / seconds,
                  .compute_share = busy.compute_seconds / seconds};
}

// What would help generation, from the rates it ran at. Its computation is
// shared out among the units by their bytes.
std::optional<NextSpend> AdviceFor(const Engine& engine,
                                   const SessionTimes& times) {
  const EngineStats& stats = times.generation;
  const MemoryPlan& plan = engine.plan();
  if (stats.passes == 0 || times.generation_seconds <= 0) return std::nullopt;
  const MemoryPlan* const vram = engine.vram_plan();
  const LinkRates links = {.disk = DiskRate(stats),
                           .upload = UploadRate(stats)};
  if (plan.pass_read_bytes > 0 && links.disk <= 0) return std::nullopt;
  if (vram != nullptr && vram->pass_read_bytes > 0 && links.upload <= 0)
    return std::nullopt;
  const WeightMap& weights = engine.model().weights();
  const double second_per_byte = stats.compute_seconds /
                                 static_cast<double>(stats.passes) /
                                 static_cast<double>(weights.weight_bytes());
  std::vector<UnitCost> costs;
  for (const WeightUnit& unit : weights.units) {
    costs.push_back(
        {unit.read_bytes,
         second_per_byte * static_cast<double>(unit.weight_bytes())});
  }
  NextSpend spend = FindNextSpend(engine.model(), PlanOf(engine), costs, links);
  // The prediction says by how much; from where was measured.
  const double measured =
      static_cast<double>(stats.passes) / times.generation_seconds;
  spend.then_tokens_per_second *= measured / spend.now_tokens_per_second;
  spend.now_tokens_per_second = measured;
  return spend;
}

// "resident weights 1.2 GiB of 4.4 GiB, 2 slots of 16 MiB, ...", of the memory
// that is computed from.
std::string ContentsText(const Engine& engine, const MemoryPlan& plan) {
  return absl::StrFormat(
      "resident weights %s of %s, %d slots of %s, KV %s, activations %s",
      FormatByteSize(plan.resident_bytes),
      FormatByteSize(engine.model().weights().weight_bytes()), plan.slot_count,
      FormatByteSize(plan.slot_bytes), FormatByteSize(plan.fixed.kv),
      FormatByteSize(plan.fixed.activations));
}

// One line, with a device two.
std::string MemoryText(const Engine& engine) {
  const MemoryPlan& plan = engine.plan();
  const std::string peak = absl::StrFormat("memory %s of --ram %s at peak",
                                           FormatByteSize(PeakRssBytes()),
                                           FormatByteSize(plan.budget));
  const MemoryPlan* const vram = engine.vram_plan();
  if (vram == nullptr) return peak + ": " + ContentsText(engine, plan) + "\n";
  const EngineStats stats = engine.stats();
  return absl::StrFormat(
      "%s: weights %s, staging %s, %s of it pinned; uploaded %s, %s a pass "
      "planned, %.2f GB/s while copying\n"
      "device memory %s of --vram %s: %s\n",
      peak, FormatByteSize(plan.resident_bytes),
      FormatByteSize(plan.fixed.staging), FormatByteSize(engine.pinned_bytes()),
      FormatByteSize(stats.bytes_uploaded),
      FormatByteSize(vram->pass_read_bytes), UploadRate(stats) / 1e9,
      FormatByteSize(vram->total()), FormatByteSize(vram->budget),
      ContentsText(engine, *vram));
}

std::string ProcessorText(const Engine& engine) {
  if (engine.vram_plan() != nullptr) return engine.device_name();
  return absl::StrFormat("%s, %d threads", engine.isa_name(), engine.threads());
}

std::string LimitText(const Engine& engine, const SessionTimes& times) {
  const bool generated = times.generation.passes > 0;
  const std::optional<RunLimit> limit =
      generated ? FindLimit(times.generation, times.generation_seconds)
                : FindLimit(engine.stats(), times.prompt_seconds);
  if (!limit) return "";
  std::string text =
      absl::StrFormat("%s limited by %s: disk busy %.0f %%",
                      generated ? "generation" : "prompt",
                      LinkName(limit->link), 100 * limit->disk_share);
  if (engine.vram_plan() != nullptr)
    absl::StrAppendFormat(&text, ", upload %.0f %%", 100 * limit->upload_share);
  absl::StrAppendFormat(&text, ", computing %.0f %% of the time",
                        100 * limit->compute_share);
  if (const std::optional<NextSpend> spend = AdviceFor(engine, times))
    absl::StrAppendFormat(&text, "; would help most: %s",
                          NextSpendText(*spend));
  return text + "\n";
}

nlohmann::ordered_json DeviceJson(const Engine& engine) {
  nlohmann::ordered_json json;
  json["device"] = engine.device_name();
  json["device_fallback"] = nullptr;
  if (const std::string& why = engine.options().device_fallback; !why.empty())
    json["device_fallback"] = why;
  json["vram"] = nullptr;
  const MemoryPlan* const vram = engine.vram_plan();
  if (vram == nullptr) return json;
  const EngineStats stats = engine.stats();
  json["vram"] = {
      {"budget_bytes", vram->budget},
      {"planned_bytes", vram->total()},
      {"resident_bytes", vram->resident_bytes},
      {"slots", vram->slot_count},
      {"slot_bytes", vram->slot_bytes},
      {"kv_bytes", vram->fixed.kv},
      {"activation_bytes", vram->fixed.activations},
      {"upload_bytes_per_pass", vram->pass_read_bytes},
      {"staging_bytes", engine.plan().fixed.staging},
      {"pinned_bytes", engine.pinned_bytes()},
      {"bytes_uploaded", stats.bytes_uploaded},
      {"upload_busy_seconds", stats.upload_busy_seconds},
      {"upload_GBps", Rate(static_cast<double>(stats.bytes_uploaded) / 1e9,
                           stats.upload_busy_seconds)}};
  return json;
}

}  // namespace

nlohmann::ordered_json ReportJson(const Engine& engine,
                                  const SessionTimes& times) {
  const EngineStats stats = engine.stats();
  const MemoryPlan& plan = engine.plan();
  nlohmann::ordered_json json;
  json["model"] = engine.model().config().name;
  json["architecture"] = engine.model().config().architecture->name;
  json["prompt_tokens"] = times.prompt_tokens;
  json["generated_tokens"] = times.generated_tokens;
  json["prompt_tokens_per_second"] =
      Rate(static_cast<double>(times.prompt_tokens), times.prompt_seconds);
  json["tokens_per_second"] =
      Rate(DecodedTokens(times), times.generation_seconds);
  json["prompt_seconds"] = times.prompt_seconds;
  json["generation_seconds"] = times.generation_seconds;
  json["passes"] = stats.passes;
  json["bytes_from_disk"] = stats.bytes_from_disk;
  json["pass_read_bytes"] = plan.pass_read_bytes;
  json["first_pass_read_bytes"] = plan.first_pass_read_bytes;
  json["weights_bytes"] = engine.model().weights().weight_bytes();
  json["file_tensor_bytes"] = engine.model().checkpoint().tensor_bytes();
  json["ram_bytes"] = plan.budget;
  json["planned_bytes"] = plan.total();
  json["resident_bytes"] = plan.resident_bytes;
  json["slot_bytes"] = plan.slots_bytes();
  json["kv_bytes"] = plan.fixed.kv;
  json["activation_bytes"] = plan.fixed.activations;
  json["tokenizer_bytes"] = plan.fixed.tokenizer;
  json["peak_rss_bytes"] = PeakRssBytes();
  json["disk_GBps"] = Rate(static_cast<double>(stats.bytes_from_disk) / 1e9,
                           stats.disk_busy_seconds);
  json["disk_busy_seconds"] = stats.disk_busy_seconds;
  json["compute_seconds"] = stats.compute_seconds;
  json["stall_seconds"] = stats.stall_seconds;
  const std::optional<RunLimit> limit =
      FindLimit(times.generation, times.generation_seconds);
  json["generation_uploaded_bytes"] = times.generation.bytes_uploaded;
  json["generation_upload_busy_seconds"] = times.generation.upload_busy_seconds;
  json["limited_by"] = nullptr;
  if (limit) json["limited_by"] = LinkName(limit->link);
  json["generation_disk_bytes"] = times.generation.bytes_from_disk;
  json["generation_disk_busy_seconds"] = times.generation.disk_busy_seconds;
  json["generation_compute_seconds"] = times.generation.compute_seconds;
  json["generation_stall_seconds"] = times.generation.stall_seconds;
  json["advice"] = nullptr;
  if (const std::optional<NextSpend> spend = AdviceFor(engine, times))
    json["advice"] = NextSpendText(*spend);
  json.update(DeviceJson(engine));
  json["io_backend"] = engine.io_backend();
  json["direct_io"] = engine.direct_io();
  json["prefetch_depth"] = engine.prefetch_depth();
  json["context"] = engine.context();
  json["isa"] = engine.isa_name();
  json["threads"] = engine.threads();
  return json;
}

std::string ReportText(const Engine& engine, const SessionTimes& times,
                       std::optional<uint64_t> seed) {
  const EngineStats stats = engine.stats();
  const MemoryPlan& plan = engine.plan();
  std::string text =
      Speed("prompt", static_cast<double>(times.prompt_tokens),
            times.prompt_seconds) +
      Speed("generated", DecodedTokens(times), times.generation_seconds);
  if (seed) absl::StrAppendFormat(&text, "seed %d", *seed);
  text += '\n';
  text += MemoryText(engine);
  absl::StrAppendFormat(
      &text,
      "disk %s in %d passes, %s a pass planned, %.2f GB/s while reading (%s, "
      "%s, prefetch depth %d)\n",
      FormatByteSize(stats.bytes_from_disk), stats.passes,
      FormatByteSize(plan.pass_read_bytes), DiskRate(stats) / 1e9,
      engine.io_backend(), engine.direct_io() ? "direct" : "buffered",
      engine.prefetch_depth());
  absl::StrAppendFormat(
      &text, "computed %.2f s, waited %.2f s for weights (%s)\n",
      stats.compute_seconds, stats.stall_seconds, ProcessorText(engine));
  return text + LimitText(engine, times);
}

}  // namespace coldstream
