#include "tools/tune_measurement.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/byte_units.h"
#include "runtime/engine_plan.h"
#include "runtime/profile_keys.h"
#include "runtime/session.h"
#include "tools/engine_flags.h"

namespace coldstream {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kProbeMemory = 64 * kMiB;
constexpr uint64_t kLeastProbeMemory = 8 * kMiB;
// A visit takes more passes than asked for where those are over too soon to say
// much, up to a bound.
constexpr double kVisitSeconds = 0.5;
constexpr int kMostPasses = 64;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Decodes until enough steady passes are seen.
class SteadyPasses {
 public:
  SteadyPasses(Engine* engine, int passes, double give_up_below)
      : engine_(engine),
        reads_(engine->plan().pass_read_bytes > 0),
        passes_(passes),
        give_up_below_(give_up_below) {}

  StatusOr<TuneSample> Run() {
    // The first pass, the measured ones, and one more that is read ahead for.
    most_ = std::max(passes_, kMostPasses);
    most_ =
        static_cast<int>(std::clamp<int64_t>(engine_->context() - 2, 1, most_));
    const auto count = static_cast<size_t>(most_) + 2;
    const auto vocabulary = static_cast<size_t>(engine_->model().vocab_size());
    std::vector<TokenId> tokens(count);
    for (size_t i = 0; i < count; ++i)
      tokens[i] = static_cast<TokenId>((17 * i + 5) % vocabulary);
    const auto session = engine_->NewSession();
    const Status status =
        session->Evaluate(tokens, 1, Session::Logits::kAll,
                          [this](int64_t index, std::span<const float>) {
                            return EndPass(static_cast<int>(index));
                          });
    if (sample_.passes > 0 && done_) return sample_;
    return status.ok() ? absl::InternalError("no steady pass was measured")
                       : status;
  }

 private:
  // An error ends the evaluation: after the last measured pass on purpose.
  Status EndPass(int pass) {
    if (pass == 0) {
      begin_ = Clock::now();
      first_ = engine_->stats();
      return absl::OkStatus();
    }
    sample_.passes = pass;
    sample_.seconds = SecondsSince(begin_);
    const EngineStats used = Since(first_, engine_->stats());
    sample_.bytes = reads_ ? used.bytes_from_disk : used.bytes_uploaded;
    done_ = pass == most_ ||
            (pass >= passes_ && sample_.seconds >= kVisitSeconds) ||
            pass / sample_.seconds < give_up_below_;
    return done_ ? absl::AbortedError("measured") : absl::OkStatus();
  }

  Engine* const engine_;
  const bool reads_;  // else it is uploads that the rate is of
  const int passes_;
  const double give_up_below_;
  int most_ = 0;  // passes measured
  Clock::time_point begin_;
  EngineStats first_;
  TuneSample sample_;
  bool done_ = false;
};

template <typename T>
void AddSorted(T value, std::vector<T>* values) {
  const auto at = std::lower_bound(values->begin(), values->end(), value);
  if (at == values->end() || *at != value) values->insert(at, value);
}

class TuneBench {
 public:
  TuneBench(const TuneFlags& flags, EngineOptions options,
            const TuneProgress& progress)
      : flags_(flags), options_(std::move(options)), progress_(progress) {}

  StatusOr<TuneMeasurement> Run() {
    RETURN_IF_ERROR(OpenModel(flags_.stream.direct));
    ASSIGN_OR_RETURN(EnginePlan plan, PlanEngine(*model_, options_));
    // From now on the same for every point, whatever is free by then.
    options_.ram_bytes = plan.options.ram_bytes;
    options_.vram_bytes = plan.options.vram_bytes;
    options_.threads = plan.options.threads;
    Describe(plan);
    if (!result_.streams()) return std::move(result_);
    RETURN_IF_ERROR(ProbeTheDisk(plan.memory));
    // With the chunk and depth that the disk asks for.
    ASSIGN_OR_RETURN(plan, PlanEngine(*model_, options_));
    MakeSpace();
    ASSIGN_OR_RETURN(
        result_.result,
        Tune(result_.space, Start(plan), TuneOptionsFrom(flags_),
             [this](const TunePoint& point, int passes, double give_up_below) {
               return Measure(point, passes, give_up_below);
             }));
    return std::move(result_);
  }

 private:
  static TuneOptions TuneOptionsFrom(const TuneFlags& flags) {
    return {.passes = flags.passes, .seconds = flags.seconds};
  }

  // One at a time: its tokenizer counts towards the cap.
  Status OpenModel(DirectMode direct) {
    if (model_ != nullptr && direct == direct_) return absl::OkStatus();
    model_ = nullptr;
    ModelOptions options = ModelOptionsFrom(flags_.stream);
    options.direct = direct;
    ASSIGN_OR_RETURN(model_, Model::Open(options));
    direct_ = direct;
    return absl::OkStatus();
  }

  void Describe(const EnginePlan& plan) {
    const Checkpoint& checkpoint = model_->checkpoint();
    result_.model = flags_.stream.model;
    result_.disk = IdentifyDisk(*checkpoint.files().front());
    result_.key = TunedKeyOf(result_.disk.Key(), checkpoint, plan.options);
    for (const WeightUnit& unit : model_->weights().units)
      result_.weight_bytes += unit.weight_bytes();
    result_.pass_read_bytes = plan.memory.pass_read_bytes;
    if (plan.vram) result_.pass_upload_bytes = plan.vram->pass_read_bytes;
  }

  Status ProbeTheDisk(const MemoryPlan& memory) {
    // Slots and small pages: twice, beside what the process has already.
    const uint64_t taken = memory.fixed.process + memory.fixed.tokenizer;
    const uint64_t room = memory.budget > taken ? memory.budget - taken : 0;
    if (flags_.probe_seconds <= 0 || room / 2 < kLeastProbeMemory ||
        result_.pass_read_bytes == 0)
      return absl::OkStatus();
    progress_("the disk alone");
    ASSIGN_OR_RETURN(
        result_.probe,
        ProbeDisk(model_->checkpoint().files().front(),
                  {.seconds = flags_.probe_seconds,
                   .memory_bytes = std::min(kProbeMemory, room / 2),
                   .compare_buffers = true,
                   .reader = options_.reader,
                   .cancel = options_.cancel}));
    const DiskProbe& probe = *result_.probe;
    if (!flags_.stream.io_chunk)
      options_.reader.chunk_bytes = probe.chunk_bytes;
    if (!flags_.stream.io_depth) options_.reader.depth = probe.depth;
    return absl::OkStatus();
  }

  void MakeSpace() {
    TuneSpace& space = result_.space;
    const StreamFlags& fixed = flags_.stream;
    space.prefetch_depths = {1, 2, 3, 4, 6, 8, 12, 16};
    space.io_depths = {4, 8, 16, 32};
    space.chunks = {kMiB / 2, kMiB, 2 * kMiB, 4 * kMiB, 8 * kMiB};
    if (result_.pass_read_bytes == 0) {
      // Nothing is read: there are only the slots.
      space.io_depths = {options_.reader.depth};
      space.chunks = {options_.reader.chunk_bytes};
    }
    if (fixed.prefetch_depth) space.prefetch_depths = {*fixed.prefetch_depth};
    if (fixed.io_depth) space.io_depths = {*fixed.io_depth};
    if (fixed.io_chunk) space.chunks = {*fixed.io_chunk};
    space.modes = {{fixed.io, fixed.direct, false}};
    if (result_.pass_read_bytes == 0) return;
    const bool uring = !result_.probe || result_.probe->backend == "uring";
    if (fixed.io == IoBackendKind::kAuto && uring)
      space.modes.push_back({IoBackendKind::kPread, fixed.direct, false});
    const bool direct = result_.probe && result_.probe->direct;
    if (fixed.direct == DirectMode::kAuto && direct)
      space.modes.push_back({fixed.io, DirectMode::kOff, true});
  }

  TunePoint Start(const EnginePlan& plan) {
    const TunePoint start{plan.options.prefetch_depth, options_.reader.depth,
                          options_.reader.chunk_bytes, 0};
    AddSorted(start.prefetch_depth, &result_.space.prefetch_depths);
    AddSorted(start.io_depth, &result_.space.io_depths);
    AddSorted(start.chunk_bytes, &result_.space.chunks);
    return start;
  }

  StatusOr<TuneSample> Measure(const TunePoint& point, int passes,
                               double give_up_below) {
    const Clock::time_point begin = Clock::now();
    const TuneMode& mode = result_.space.modes[point.mode];
    progress_(absl::StrFormat("visit %d: prefetch depth %d, %d reads of %d KiB",
                              ++visits_, point.prefetch_depth, point.io_depth,
                              point.chunk_bytes / 1024));
    RETURN_IF_ERROR(OpenModel(mode.direct));
    EngineOptions options = options_;
    options.prefetch_depth = point.prefetch_depth;
    options.reader.depth = point.io_depth;
    options.reader.chunk_bytes = point.chunk_bytes;
    options.reader.backend = mode.backend;
    ASSIGN_OR_RETURN(const auto engine, Engine::Create(model_, options));
    for (const std::string& line : engine->warnings()) {
      std::vector<std::string>& known = result_.warnings;
      if (std::find(known.begin(), known.end(), line) == known.end())
        known.push_back(line);
    }
    ASSIGN_OR_RETURN(TuneSample sample,
                     SteadyPasses(engine.get(), passes, give_up_below).Run());
    const MemoryPlan* const vram = engine->vram_plan();
    sample.memory_bytes =
        (vram != nullptr ? *vram : engine->plan()).slots_bytes();
    sample.cost_seconds = SecondsSince(begin);
    return sample;
  }

  const TuneFlags& flags_;
  EngineOptions options_;
  const TuneProgress& progress_;
  std::shared_ptr<const Model> model_;
  DirectMode direct_ = DirectMode::kAuto;  // of model_
  TuneMeasurement result_;
  int visits_ = 0;
};

}  // namespace

TunedSettings TuneMeasurement::Chosen() const {
  const TuneEntry& entry = result.curve[result.chosen];
  const TuneMode& mode = space.modes[entry.point.mode];
  return {.prefetch_depth = entry.point.prefetch_depth,
          .io_depth = entry.point.io_depth,
          .chunk_bytes = entry.point.chunk_bytes,
          .backend = mode.backend,
          .direct = mode.direct,
          .bytes_per_second = entry.bytes_per_second(),
          .tokens_per_second = entry.passes_per_second(),
          .date = ""};
}

StatusOr<TuneMeasurement> MeasureTune(const TuneFlags& flags,
                                      const EngineOptions& options,
                                      const TuneProgress& progress) {
  return TuneBench(flags, options, progress).Run();
}

}  // namespace coldstream
