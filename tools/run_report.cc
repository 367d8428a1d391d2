#include "tools/run_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "tools/byte_size.h"

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
  json["io_backend"] = engine.io_backend();
  json["direct_io"] = engine.direct_io();
  json["prefetch_depth"] = engine.prefetch_depth();
  json["context"] = engine.context();
  json["isa"] = engine.isa_name();
  json["threads"] = engine.threads();
  return json;
}

std::string ReportText(const Engine& engine, const SessionTimes& times) {
  const EngineStats stats = engine.stats();
  const MemoryPlan& plan = engine.plan();
  std::string text =
      Speed("prompt", static_cast<double>(times.prompt_tokens),
            times.prompt_seconds) +
      Speed("generated", DecodedTokens(times), times.generation_seconds);
  text += absl::StrFormat(
      "\nmemory %s of --ram %s at peak: resident weights %s of %s, %d slots of "
      "%s, KV %s, activations %s\n",
      FormatByteSize(PeakRssBytes()), FormatByteSize(plan.budget),
      FormatByteSize(plan.resident_bytes),
      FormatByteSize(engine.model().weights().weight_bytes()), plan.slot_count,
      FormatByteSize(plan.slot_bytes), FormatByteSize(plan.fixed.kv),
      FormatByteSize(plan.fixed.activations));
  text += absl::StrFormat(
      "disk %s in %d passes, %s a pass planned, %.2f GB/s while reading (%s, "
      "%s, prefetch depth %d)\n",
      FormatByteSize(stats.bytes_from_disk), stats.passes,
      FormatByteSize(plan.pass_read_bytes),
      stats.disk_busy_seconds > 0 ? static_cast<double>(stats.bytes_from_disk) /
                                        1e9 / stats.disk_busy_seconds
                                  : 0.0,
      engine.io_backend(), engine.direct_io() ? "direct" : "buffered",
      engine.prefetch_depth());
  text += absl::StrFormat(
      "computed %.2f s, waited %.2f s for weights (%s, %d threads)\n",
      stats.compute_seconds, stats.stall_seconds, engine.isa_name(),
      engine.threads());
  return text;
}

}  // namespace coldstream
