#include "tools/run_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "tools/byte_size.h"
#include "tools/forecast.h"
#include "tools/split_share.h"

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

// A pass of generation: what each side computed is shared out among its units
// by their bytes. Of a side that computed nothing, the rate that the plan was
// made by.
SideCosts MeasuredCosts(const Engine& engine, const EnginePlan& plan,
                        const EngineStats& stats) {
  const Model& model = engine.model();
  const auto passes = static_cast<double>(stats.passes);
  const auto cpu_bytes =
      static_cast<double>(ShareOf(model, plan, Phase::kDecode).cpu_bytes);
  const double main_bytes =
      static_cast<double>(model.weights().weight_bytes()) - cpu_bytes;
  double cpu_byte = 0;
  if (cpu_bytes > 0) {
    cpu_byte = stats.cpu_seconds / passes / cpu_bytes;
  } else if (plan.options.split_rates.known()) {
    cpu_byte = 1 / plan.options.split_rates.cpu;
  }
  const double main_byte =
      (stats.compute_seconds - stats.cpu_seconds) / passes / main_bytes;
  SideCosts costs;
  for (const WeightUnit& unit : model.weights().units) {
    const auto bytes = static_cast<double>(unit.weight_bytes());
    costs.main.push_back({unit.read_bytes, main_byte * bytes});
    if (cpu_byte > 0) costs.cpu.push_back({unit.read_bytes, cpu_byte * bytes});
  }
  return costs;
}

// What would help generation, from the rates it ran at.
std::optional<NextSpend> AdviceFor(const Engine& engine,
                                   const SessionTimes& times) {
  const EngineStats& stats = times.generation;
  if (stats.passes == 0 || times.generation_seconds <= 0) return std::nullopt;
  const EnginePlan plan = PlanOf(engine);
  const SplitShare share = ShareOf(engine.model(), plan, Phase::kDecode);
  LinkRates links = {.disk = DiskRate(stats), .upload = UploadRate(stats)};
  // Generation may have copied nothing; the first pass has.
  if (links.upload <= 0) links.upload = UploadRate(engine.stats());
  if (plan.memory.pass_read_bytes > 0 && links.disk <= 0) return std::nullopt;
  if (share.upload_bytes + share.cpu_bytes > 0 && links.upload <= 0)
    return std::nullopt;
  NextSpend spend = FindNextSpend(engine.model(), plan,
                                  MeasuredCosts(engine, plan, stats), links);
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

std::string PeakText(const MemoryPlan& plan) {
  return absl::StrFormat("memory %s of --ram %s at peak",
                         FormatByteSize(PeakRssBytes()),
                         FormatByteSize(plan.budget));
}

// "disk 1.2 GiB in 33 passes, ..."
std::string DiskText(const Engine& engine) {
  const EngineStats stats = engine.stats();
  return absl::StrFormat(
      "disk %s in %d passes, %s a pass planned, %.2f GB/s while reading (%s, "
      "%s, prefetch depth %d)",
      FormatByteSize(stats.bytes_from_disk), stats.passes,
      FormatByteSize(engine.plan().pass_read_bytes), DiskRate(stats) / 1e9,
      engine.io_backend(), engine.direct_io() ? "direct" : "buffered",
      engine.prefetch_depth());
}

std::string ComputeText(const EngineStats& stats) {
  return absl::StrFormat("computed %.2f s, waited %.2f s for weights",
                         stats.compute_seconds, stats.stall_seconds);
}

// Three lines: memory, disk, computation.
std::string CpuText(const Engine& engine) {
  return absl::StrFormat(
      "%s: %s\n%s\n%s (%s, %d threads)\n", PeakText(engine.plan()),
      ContentsText(engine, engine.plan()), DiskText(engine),
      ComputeText(engine.stats()), engine.isa_name(), engine.threads());
}

// Three lines: of the host, of the device, of who computed.
std::string DeviceText(const Engine& engine, const MemoryPlan& vram) {
  const MemoryPlan& plan = engine.plan();
  const EngineStats stats = engine.stats();
  const SplitShare share =
      ShareOf(engine.model(), PlanOf(engine), Phase::kDecode);
  return absl::StrFormat(
      "%s: weights %s, staging %s, %s of it pinned; %s\n"
      "device memory %s of --vram %s: %s; uploaded %s, %s a token planned, "
      "%.2f GB/s while copying\n"
      "%s (%s; %.2f s of it the CPU: %s)\n",
      PeakText(plan), FormatByteSize(plan.resident_bytes),
      FormatByteSize(plan.fixed.staging), FormatByteSize(engine.pinned_bytes()),
      DiskText(engine), FormatByteSize(vram.total()),
      FormatByteSize(vram.budget), ContentsText(engine, vram),
      FormatByteSize(stats.bytes_uploaded), FormatByteSize(share.upload_bytes),
      UploadRate(stats) / 1e9, ComputeText(stats), engine.device_name(),
      stats.cpu_seconds, SplitText(engine.split()));
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
  json["split"] = nullptr;
  const MemoryPlan* const vram = engine.vram_plan();
  if (vram == nullptr) return json;
  const EngineStats stats = engine.stats();
  json["split"] = SplitJson(SummarizeSplit(engine.model(), PlanOf(engine)));
  json["split"]["cpu_units_computed"] = stats.cpu_units;
  json["split"]["cpu_seconds"] = stats.cpu_seconds;
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
  json["kv_type"] = NameOf(engine.options().kv_type);
  json["isa"] = engine.isa_name();
  json["threads"] = engine.threads();
  return json;
}

std::string ReportText(const Engine& engine, const SessionTimes& times,
                       std::optional<uint64_t> seed) {
  std::string text =
      Speed("prompt", static_cast<double>(times.prompt_tokens),
            times.prompt_seconds) +
      Speed("generated", DecodedTokens(times), times.generation_seconds);
  if (seed) absl::StrAppendFormat(&text, "seed %d", *seed);
  text += '\n';
  const MemoryPlan* const vram = engine.vram_plan();
  text += vram != nullptr ? DeviceText(engine, *vram) : CpuText(engine);
  return text + LimitText(engine, times);
}

}  // namespace coldstream
