#include "tools/bench_measurement.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "io/page_cache.h"
#include "runtime/device_memory_rate.h"
#include "runtime/engine.h"
#include "runtime/engine_plan.h"
#include "tools/bench_runner.h"
#include "tools/command.h"
#include "tools/engine_flags.h"
#include "tools/engine_status.h"
#include "tools/interrupt.h"
#include "tools/memory_ceiling.h"

namespace coldstream {
namespace {

using Files = std::vector<std::shared_ptr<File>>;

// Of all files together.
std::optional<double> CachedShare(const Files& files) {
  double cached = 0;
  double all = 0;
  for (const std::shared_ptr<File>& file : files) {
    const StatusOr<double> fraction = CachedFraction(*file);
    if (!fraction.ok()) return std::nullopt;
    cached += *fraction * static_cast<double>(file->size());
    all += static_cast<double>(file->size());
  }
  return all > 0 ? std::optional(cached / all) : std::nullopt;
}

const std::shared_ptr<File>& LargestFile(const Files& files) {
  return *std::max_element(
      files.begin(), files.end(),
      [](const auto& a, const auto& b) { return a->size() < b->size(); });
}

EngineOptions OptionsFor(const BenchFlags& flags) {
  const int64_t positions = flags.prompt_tokens + flags.generated_tokens;
  EngineOptions options = EngineOptionsFrom(flags.stream, positions);
  // Of a pass.
  const int64_t most =
      flags.sequences * std::max<int64_t>(flags.prompt_tokens, 1);
  options.batch_tokens = std::min(options.batch_tokens, most);
  options.max_sequences = std::min(flags.sequences, options.batch_tokens);
  options.queue_length = flags.sequences;
  return options;
}

class Bench {
 public:
  Bench(const BenchFlags& flags, std::shared_ptr<const Model> model)
      : flags_(flags),
        model_(std::move(model)),
        files_(model_->checkpoint().files()),
        counter_(files_) {}

  StatusOr<BenchMeasurement> Measure() {
    EngineOptions options = OptionsFor(flags_);
    RETURN_IF_ERROR(OpenDevice(flags_.stream, &options));
    // What can be wrong with them is found before anything is measured.
    ASSIGN_OR_RETURN(const EnginePlan plan, PlanEngine(*model_, options));
    RETURN_IF_ERROR(CheckContext(plan.options));
    // The same for engine and ceilings, whatever is free by then.
    options.vram_bytes = plan.options.vram_bytes;
    MeasureMemory(plan);
    RETURN_IF_ERROR(MeasureUpload(plan, &result_.upload_ceiling.before));
    RETURN_IF_ERROR(MeasureDisk(plan, &result_.disk_ceiling.before));
    ASSIGN_OR_RETURN(const auto trace, OpenTrace(flags_.stream));
    options.trace = trace.get();
    RETURN_IF_ERROR(FinishTrace(trace.get(), MeasureEngine(options)));
    RETURN_IF_ERROR(MeasureDisk(plan, &result_.disk_ceiling.after));
    RETURN_IF_ERROR(MeasureUpload(plan, &result_.upload_ceiling.after));
    result_.peak_rss = PeakRssBytes();
    return std::move(result_);
  }

 private:
  // For probes: half of what the engine may take, so that the process stays
  // within its budget.
  static uint64_t SpareMemory(const EnginePlan& plan) {
    const FixedMemory& fixed = plan.memory.fixed;
    return (plan.memory.budget - fixed.process - fixed.tokenizer) / 2;
  }

  void MeasureMemory(const EnginePlan& plan) {
    if (flags_.probe_seconds <= 0) return;
    const StatusOr<double> rate =
        plan.vram
            ? MeasureDeviceMemoryRate(*plan.options.gpu)
            : MeasureMemoryCeiling(plan.options.threads, SpareMemory(plan));
    if (rate.ok()) {
      result_.memory_ceiling = *rate;
    } else {
      PrintWarning(MessageOf(rate.status()));
    }
  }

  Status MeasureUpload(const EnginePlan& plan,
                       std::optional<UploadProbe>* probe) {
    if (flags_.probe_seconds <= 0 || !plan.vram ||
        plan.vram->pass_read_bytes == 0)
      return absl::OkStatus();
    ASSIGN_OR_RETURN(*probe, ProbeUpload(plan.options.gpu->device.get(),
                                         {.seconds = flags_.probe_seconds}));
    return absl::OkStatus();
  }

  Status MeasureDisk(const EnginePlan& plan, std::optional<DiskProbe>* probe) {
    if (flags_.probe_seconds <= 0 || plan.memory.pass_read_bytes == 0)
      return absl::OkStatus();
    DiskProbeOptions options;
    options.seconds = flags_.probe_seconds;
    options.memory_bytes = std::min(options.memory_bytes, SpareMemory(plan));
    options.reader = plan.options.reader;
    options.cancel = plan.options.cancel;
    ASSIGN_OR_RETURN(*probe, ProbeDisk(LargestFile(files_), options));
    return absl::OkStatus();
  }

  Status MeasureEngine(const EngineOptions& options) {
    ASSIGN_OR_RETURN(
        const auto engine,
        CreateEngine(flags_.stream, model_, options, &result_.settings));
    StatusLine status(EngineStatus(*engine, result_.disk_ceiling.best()));
    BenchRunner runner(&flags_, &counter_, engine.get(), &status);
    RETURN_IF_ERROR(MeasureRuns(&runner));
    Describe(*engine);
    return absl::OkStatus();
  }

  Status CheckContext(const EngineOptions& options) const {
    const int64_t positions = flags_.prompt_tokens + flags_.generated_tokens;
    if (positions <= options.context) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("-p and -n need a context of %d tokens but -c is %d",
                        positions, options.context));
  }

  // Before the warm-up (`first`) and before each measured run.
  Status PrepareCache(bool first) {
    for (const std::shared_ptr<File>& file : files_) {
      if (flags_.cache == CacheState::kCold)
        RETURN_IF_ERROR(DropFromPageCache(*file));
      if (flags_.cache == CacheState::kWarm && first)
        RETURN_IF_ERROR(FillPageCache(*file, &CatchInterrupts()));
    }
    return absl::OkStatus();
  }

  Status MeasureRuns(BenchRunner* runner) {
    RETURN_IF_ERROR(PrepareCache(true));
    for (int run = 1; run <= flags_.warmup; ++run) {
      RETURN_IF_ERROR(
          runner
              ->Run(absl::StrFormat("warm-up %d/%d", run, flags_.warmup),
                    flags_.warmup - run + flags_.runs)
              .status());
    }
    for (int run = 1; run <= flags_.runs; ++run) {
      RETURN_IF_ERROR(PrepareCache(false));
      if (run == 1) result_.cached_before = CachedShare(files_);
      ASSIGN_OR_RETURN(
          const BenchRun measured,
          runner->Run(absl::StrFormat("run %d/%d", run, flags_.runs),
                      flags_.runs - run));
      result_.runs.push_back(measured);
    }
    result_.cached_after = CachedShare(files_);
    return absl::OkStatus();
  }

  void Describe(const Engine& engine) {
    const EngineOptions& options = engine.options();
    result_.model = model_->config().name;
    result_.architecture = model_->config().architecture->name;
    result_.weight_bytes = model_->weights().weight_bytes();
    result_.plan = engine.plan();
    result_.device = engine.device_name();
    result_.device_fallback = options.device_fallback;
    if (engine.vram_plan() != nullptr) result_.vram = *engine.vram_plan();
    result_.split = SummarizeSplit(*model_, PlanOf(engine));
    result_.pinned_bytes = engine.pinned_bytes();
    result_.disk = IdentifyDisk(*LargestFile(files_)).Describe();
    for (const DiskIdentity& disk : counter_.disks())
      result_.in_memory = result_.in_memory || disk.in_memory;
    result_.io_backend = engine.io_backend();
    result_.direct = engine.direct_io();
    result_.io_depth = options.reader.depth;
    result_.io_chunk = options.reader.chunk_bytes;
    result_.prefetch_depth = engine.prefetch_depth();
    result_.batch_tokens = options.batch_tokens;
    result_.sequences = flags_.sequences;
    result_.threads = engine.threads();
    result_.isa = engine.isa_name();
    result_.prompt_tokens = flags_.prompt_tokens;
    result_.generated_tokens = flags_.generated_tokens;
    result_.warmup = flags_.warmup;
    result_.cache = flags_.cache;
  }

  const BenchFlags& flags_;
  const std::shared_ptr<const Model> model_;
  const Files& files_;
  const ReadCounter counter_;
  BenchMeasurement result_;
};

}  // namespace

StatusOr<BenchMeasurement> MeasureBench(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(auto model, Model::Open(ModelOptionsFrom(flags.stream)));
  return Bench(flags, std::move(model)).Measure();
}

}  // namespace coldstream
