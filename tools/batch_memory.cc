#include "tools/batch_memory.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/engine_plan.h"
#include "runtime/rate_finder.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

// Of what the fixed parts leave, where nothing can be predicted.
constexpr uint64_t kKvShare = 3;
// Fewer requests are preferred to this little more speed: their answers come
// earlier, and the memory is somebody else's.
constexpr double kSame = 1.005;

struct Candidate {
  BatchMemory memory;
  EnginePlan plan;
};

const MemoryPlan& ComputingMemory(const EnginePlan& plan) {
  return plan.vram ? *plan.vram : plan.memory;
}

uint64_t PassBytes(const EnginePlan& plan) {
  return plan.memory.pass_read_bytes +
         (plan.vram ? plan.vram->pass_read_bytes : 0);
}

StatusOr<Candidate> PlanFor(const Model& model, EngineOptions options,
                            int64_t sequences, int64_t kv_tokens) {
  options.kv_tokens = kv_tokens;
  Candidate candidate;
  ASSIGN_OR_RETURN(candidate.plan, PlanEngine(model, options));
  const MemoryPlan& memory = ComputingMemory(candidate.plan);
  BatchMemory& chosen = candidate.memory;
  chosen.sequences = sequences;
  chosen.kv_tokens = kv_tokens;
  chosen.kv_bytes = memory.fixed.kv;
  chosen.resident_bytes = memory.resident_bytes;
  chosen.all_resident = memory.pass_read_bytes == 0;
  return candidate;
}

// 1, 2, 3, 4, 6, 8, 12, 16, ... and `most`.
std::vector<int64_t> Counts(int64_t most) {
  std::vector<int64_t> counts;
  for (int64_t n = 1; n < most; n *= 2) {
    counts.push_back(n);
    if (n > 1 && n + n / 2 < most) counts.push_back(n + n / 2);
  }
  counts.push_back(most);
  return counts;
}

class Chooser {
 public:
  Chooser(const Model& model, const EngineOptions& options,
          const BatchDemand& demand, int64_t context)
      : model_(model),
        options_(options),
        most_(demand.sequences),
        context_(context),
        positions_(demand.positions > 0 ? std::min(demand.positions, context)
                                        : context) {}

  // One request has to have room up to the whole context.
  StatusOr<Candidate> Plan(int64_t sequences) const {
    return PlanFor(model_, options_, sequences,
                   std::max(sequences * positions_, context_));
  }

  StatusOr<BatchMemory> Best(const MachineRates& rates) const {
    std::optional<BatchMemory> best;
    std::vector<BatchMemory::Point> points;
    for (const int64_t n : Counts(most_)) {
      StatusOr<Candidate> candidate = Plan(n);
      if (!candidate.ok()) {
        if (!best) return candidate.status();
        break;  // more have no room either
      }
      // Of one token each, half way through the requests.
      const std::optional<double> rate =
          ForecastPass(
              model_, candidate->plan, rates,
              {.tokens = n, .logit_rows = n, .position = positions_ / 2})
              .tokens_per_second();
      if (!rate) return Share();
      BatchMemory& memory = candidate->memory;
      memory.tokens_per_second = *rate;
      points.push_back({n, memory.tokens_per_second});
      if (!best || memory.tokens_per_second > kSame * best->tokens_per_second)
        best = memory;
    }
    std::erase_if(points, [&](const BatchMemory::Point& point) {
      return point.sequences == best->sequences;
    });
    best->others = std::move(points);
    return *std::move(best);
  }

  // Weights that have to be read again cost more than requests that wait.
  StatusOr<BatchMemory> Share() const {
    ASSIGN_OR_RETURN(const Candidate one, Plan(1));
    const MemoryPlan& memory = ComputingMemory(one.plan);
    const uint64_t token = std::max<uint64_t>(
        memory.fixed.kv / static_cast<uint64_t>(one.memory.kv_tokens), 1);
    const uint64_t fixed = memory.fixed.total() - memory.fixed.kv;
    const uint64_t rest = memory.budget > fixed ? memory.budget - fixed : 0;
    const auto room = static_cast<int64_t>(rest / kKvShare / token);
    const int64_t sequences = std::clamp<int64_t>(room / positions_, 1, most_);
    ASSIGN_OR_RETURN(Candidate shared, Plan(sequences));
    return shared.memory;
  }

 private:
  const Model& model_;
  const EngineOptions& options_;
  const int64_t most_;
  const int64_t context_;
  const int64_t positions_;
};

std::string OthersText(const BatchMemory& memory) {
  // Of the points on either side, the nearest ones.
  std::string text;
  for (const BatchMemory::Point& point : memory.others) {
    const bool near = point.sequences * 3 >= memory.sequences &&
                      point.sequences <= memory.sequences * 3;
    if (!near) continue;
    absl::StrAppendFormat(&text, "%s%d: %.3g", text.empty() ? "" : ", ",
                          point.sequences, point.tokens_per_second);
  }
  return text.empty() ? text : absl::StrFormat(" (%s)", text);
}

}  // namespace

StatusOr<BatchMemory> ChooseBatchMemory(
    const Model& model, const EngineOptions& options, const BatchDemand& demand,
    const std::function<StatusOr<MachineRates>()>& rates) {
  EngineOptions one = options;
  one.max_sequences = 1;
  one.kv_tokens = 0;
  ASSIGN_OR_RETURN(const EnginePlan plan, PlanEngine(model, one));
  const Chooser chooser(model, options, demand, plan.options.context);
  const StatusOr<Candidate> all = chooser.Plan(demand.sequences);
  if (all.ok() && all->memory.all_resident) return all->memory;
  const bool worth = !all.ok() || PassBytes(all->plan) >= kWorthMeasuring;
  if (!worth || !HasRoomToMeasure(plan.memory)) return chooser.Share();
  ASSIGN_OR_RETURN(const MachineRates known, rates());
  return chooser.Best(known);
}

std::string BatchMemoryText(const BatchMemory& memory) {
  std::string text = absl::StrFormat(
      "keys and values of %d requests of %d positions at once: %s; %s of "
      "weights stay",
      memory.sequences, memory.kv_tokens / memory.sequences,
      FormatByteSize(memory.kv_bytes), FormatByteSize(memory.resident_bytes));
  if (memory.tokens_per_second > 0) {
    absl::StrAppendFormat(&text, "; predicted %.3g tok/s%s",
                          memory.tokens_per_second, OthersText(memory));
  }
  return text;
}

}  // namespace coldstream
