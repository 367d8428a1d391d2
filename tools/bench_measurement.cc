#include "tools/bench_measurement.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "io/page_cache.h"
#include "runtime/engine.h"
#include "runtime/session.h"
#include "tools/command.h"
#include "tools/engine_flags.h"
#include "tools/interrupt.h"
#include "tools/memory_ceiling.h"
#include "tools/random_stream.h"

namespace coldstream {
namespace {

constexpr uint64_t kTokenSeed = 1;

using Files = std::vector<std::shared_ptr<File>>;

// The same ids every time: speed must not hang on what they are, but the rows
// of the embedding table read for them do.
std::vector<TokenId> FixedTokens(int64_t count, int64_t vocabulary) {
  RandomStream random(kTokenSeed);
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(random.Next() %
                                          static_cast<uint64_t>(vocabulary)));
  }
  return tokens;
}

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
  options.batch_tokens =
      std::min(options.batch_tokens, std::max<int64_t>(flags.prompt_tokens, 1));
  return options;
}

class Bench {
 public:
  Bench(const BenchFlags& flags, std::shared_ptr<const Model> model)
      : flags_(flags),
        model_(std::move(model)),
        files_(model_->checkpoint().files()),
        counter_(files_),
        tokens_(FixedTokens(flags.prompt_tokens + 1, model_->vocab_size())) {}

  StatusOr<BenchMeasurement> Measure() {
    EngineOptions options = OptionsFor(flags_);
    MeasureMemory(options);
    RETURN_IF_ERROR(MeasureDisk(options, &result_.disk_ceiling.before));
    ASSIGN_OR_RETURN(const auto trace, OpenTrace(flags_.stream));
    options.trace = trace.get();
    RETURN_IF_ERROR(FinishTrace(trace.get(), MeasureEngine(options)));
    if (result_.plan.pass_read_bytes > 0)
      RETURN_IF_ERROR(MeasureDisk(options, &result_.disk_ceiling.after));
    result_.peak_rss = PeakRssBytes();
    return std::move(result_);
  }

 private:
  // For probes: half of the budget, so that the process stays within it.
  static uint64_t SpareMemory(const EngineOptions& options) {
    return (options.ram_bytes > 0 ? options.ram_bytes
                                  : DefaultRamBudget().bytes) /
           2;
  }

  void MeasureMemory(const EngineOptions& options) {
    if (flags_.probe_seconds <= 0) return;
    const StatusOr<double> rate = MeasureMemoryCeiling(
        options.threads > 0 ? options.threads : DefaultThreads(),
        SpareMemory(options));
    if (rate.ok()) {
      result_.memory_ceiling = *rate;
    } else {
      PrintWarning(MessageOf(rate.status()));
    }
  }

  Status MeasureDisk(const EngineOptions& options,
                     std::optional<DiskProbe>* probe) {
    if (flags_.probe_seconds <= 0) return absl::OkStatus();
    DiskProbeOptions probe_options;
    probe_options.seconds = flags_.probe_seconds;
    probe_options.memory_bytes =
        std::min(probe_options.memory_bytes, SpareMemory(options));
    probe_options.reader = options.reader;
    probe_options.cancel = options.cancel;
    ASSIGN_OR_RETURN(*probe, ProbeDisk(LargestFile(files_), probe_options));
    return absl::OkStatus();
  }

  Status MeasureEngine(const EngineOptions& options) {
    ASSIGN_OR_RETURN(const auto engine, Engine::Create(model_, options));
    RETURN_IF_ERROR(CheckContext(*engine));
    PrintEngineWarnings(*engine);
    RETURN_IF_ERROR(MeasureRuns(engine.get()));
    Describe(*engine);
    return absl::OkStatus();
  }

  Status CheckContext(const Engine& engine) const {
    const int64_t positions = flags_.prompt_tokens + flags_.generated_tokens;
    if (positions <= engine.context()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("-p and -n need a context of %d tokens but -c is %d",
                        positions, engine.context()));
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

  Status MeasureRuns(Engine* engine) {
    const std::unique_ptr<Session> session = engine->NewSession();
    RETURN_IF_ERROR(PrepareCache(true));
    for (int run = 0; run < flags_.warmup; ++run)
      RETURN_IF_ERROR(MeasureRun(*engine, session.get()).status());
    for (int run = 0; run < flags_.runs; ++run) {
      RETURN_IF_ERROR(PrepareCache(false));
      if (run == 0) result_.cached_before = CachedShare(files_);
      ASSIGN_OR_RETURN(const BenchRun measured,
                       MeasureRun(*engine, session.get()));
      result_.runs.push_back(measured);
    }
    result_.cached_after = CachedShare(files_);
    return absl::OkStatus();
  }

  StatusOr<BenchRun> MeasureRun(const Engine& engine, Session* session) {
    BenchRun run;
    session->Reset();
    if (flags_.prompt_tokens > 0) {
      ASSIGN_OR_RETURN(run.prompt,
                       Sample(engine, [&] { return FeedPrompt(session); }));
    }
    if (flags_.generated_tokens > 0) {
      ASSIGN_OR_RETURN(run.generation,
                       Sample(engine, [&] { return Generate(session); }));
    }
    return run;
  }

  // body: a call of the session, which returns tokens and seconds.
  template <typename Body>
  StatusOr<PhaseSample> Sample(const Engine& engine, const Body& body) {
    const EngineStats before = engine.stats();
    const ReadCounts read_before = counter_.Now(before.bytes_from_disk);
    ASSIGN_OR_RETURN(PhaseSample sample, body());
    const EngineStats after = engine.stats();
    sample.used = Since(before, after);
    sample.read = counter_.Now(after.bytes_from_disk) - read_before;
    return sample;
  }

  StatusOr<PhaseSample> FeedPrompt(Session* session) {
    const auto prompt = std::span(tokens_).first(tokens_.size() - 1);
    RETURN_IF_ERROR(session->Evaluate(
        prompt, OptionsFor(flags_).batch_tokens, Session::Logits::kLast,
        [](int64_t, std::span<const float>) { return absl::OkStatus(); }));
    PhaseSample sample;
    sample.tokens = flags_.prompt_tokens;
    sample.seconds = session->times().prompt_seconds;
    return sample;
  }

  // One more fixed token, and what comes after it: a pass for each.
  StatusOr<PhaseSample> Generate(Session* session) {
    GenerateRequest request;
    request.prompt = {tokens_.back()};
    request.max_tokens = flags_.generated_tokens;
    request.sampling.temperature = 0;
    request.ignore_end_of_generation = true;
    RETURN_IF_ERROR(session->Generate(request, {}).status());
    PhaseSample sample;
    sample.tokens = session->times().generated_tokens;
    sample.seconds =
        session->times().prompt_seconds + session->times().generation_seconds;
    return sample;
  }

  void Describe(const Engine& engine) {
    const EngineOptions& options = engine.options();
    result_.model = model_->config().name;
    result_.architecture = model_->config().architecture->name;
    result_.weight_bytes = model_->weights().weight_bytes();
    result_.plan = engine.plan();
    result_.disk = IdentifyDisk(*LargestFile(files_)).Describe();
    for (const DiskIdentity& disk : counter_.disks())
      result_.in_memory = result_.in_memory || disk.in_memory;
    result_.io_backend = engine.io_backend();
    result_.direct = engine.direct_io();
    result_.io_depth = options.reader.depth;
    result_.io_chunk = options.reader.chunk_bytes;
    result_.prefetch_depth = engine.prefetch_depth();
    result_.batch_tokens = options.batch_tokens;
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
  const std::vector<TokenId> tokens_;  // the prompt, and one more
  BenchMeasurement result_;
};

}  // namespace

const char* CacheStateName(CacheState state) {
  switch (state) {
    case CacheState::kAsFound:
      return "as found";
    case CacheState::kCold:
      return "cold";
    case CacheState::kWarm:
      return "warm";
  }
  return "?";
}

StatusOr<BenchMeasurement> MeasureBench(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(auto model, Model::Open(ModelOptionsFrom(flags.stream)));
  return Bench(flags, std::move(model)).Measure();
}

}  // namespace coldstream
