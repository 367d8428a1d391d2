// Engines that compute some layers on the CPU beside a device, on one that does
// everything late and in any legal order (tests/support/deferred_device.h). Its
// operations are the CPU's, so that every placement must give the CPU's bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_units.h"
#include "runtime/engine_plan.h"
#include "scheduler/split_model.h"
#include "tests/support/deferred_engine.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/same_bits.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kChunk = 12;  // three passes of prefill, then one of decode

// What a test asks for.
struct Wanted {
  std::optional<int> gpu_layers = {};
  std::optional<int> cpu_layers = {};
  std::optional<int> cpu_ffn = {};
  std::optional<int> cpu_ffn_prefill = {};
  std::string Text() const {
    const auto text = [](const char* name, std::optional<int> value) {
      return value ? std::string(name) + std::to_string(*value) + " " : "";
    };
    return text("gpu_layers ", gpu_layers) + text("cpu_layers ", cpu_layers) +
           text("cpu_ffn ", cpu_ffn) + text("in prefill ", cpu_ffn_prefill);
  }
};

EngineOptions With(const Wanted& wanted, EngineOptions options) {
  options.gpu_layers = wanted.gpu_layers;
  options.cpu_layers = wanted.cpu_layers;
  options.cpu_ffn = wanted.cpu_ffn;
  options.cpu_ffn_prefill = wanted.cpu_ffn_prefill;
  return options;
}

int LayersOf(const Golden& golden) {
  const auto model = Model::Open({.path = golden.path()});
  EXPECT_THAT(model.status(), IsOk());
  return static_cast<int>((*model)->config().layer_count());
}

// Everything that can be asked of a model of so many layers.
std::vector<Wanted> EveryPlacement(int layers) {
  std::vector<Wanted> all;
  for (int n = 0; n <= layers + 1; ++n) all.push_back({.gpu_layers = n});
  for (int n = 0; n <= layers; ++n) {
    for (int ffn = 0; ffn <= layers - n; ++ffn) {
      all.push_back({.cpu_layers = n, .cpu_ffn = ffn});
      all.push_back(
          {.cpu_layers = n, .cpu_ffn = ffn, .cpu_ffn_prefill = layers - n});
      all.push_back({.cpu_layers = n, .cpu_ffn = ffn, .cpu_ffn_prefill = 0});
    }
  }
  return all;
}

class SplitEngineTest : public ::testing::TestWithParam<Golden> {};

TEST_P(SplitEngineTest, EveryPlacementGivesTheBitsOfTheCpuAlone) {
  const Golden& golden = GetParam();
  const auto expected = EvaluateSmallUnits(golden, OnScalarCpu(), kChunk);
  ASSERT_THAT(expected.status(), IsOk());
  const int layers = LayersOf(golden);
  std::vector<Wanted> placements = {
      {.cpu_layers = 1, .cpu_ffn = layers - 1, .cpu_ffn_prefill = 0},
      {.gpu_layers = 2, .cpu_ffn = 1}};
  if (golden.file == "llama.q4_k_m.gguf" ||
      golden.file == "command-r.q4_k_m.gguf")
    placements = EveryPlacement(layers);
  uint64_t seed = 0;
  for (const Wanted& wanted : placements) {
    EngineOptions options = With(wanted, OnDeferredDevice(++seed));
    options.prefetch_depth = 1 + static_cast<int>(seed % 3);
    if (wanted.gpu_layers != 0) {
      // As little as will do, so that what is the device's is uploaded.
      options.vram_bytes =
          LeastBudgetOf(golden, options, "--vram", &EngineOptions::vram_bytes);
      if (seed % 2 == 0) {
        options.ram_bytes =
            LeastBudgetOf(golden, options, "--ram", &EngineOptions::ram_bytes);
      }
    }
    const auto split = EvaluateSmallUnits(golden, options, kChunk);
    ASSERT_THAT(split.status(), IsOk()) << wanted.Text();
    EXPECT_TRUE(SameBits(*split, *expected))
        << wanted.Text() << "seed " << seed << ", " << options.prefetch_depth
        << " slots";
  }
}

INSTANTIATE_TEST_SUITE_P(All, SplitEngineTest,
                         ::testing::ValuesIn(LoadGoldens()),
                         [](const auto& golden) {
                           return TestNameOf(golden.param);
                         });

// A model of four layers, and engines for it.
class SplitTest : public ::testing::Test {
 protected:
  static constexpr int kLayers = 4;

  void SetUp() override { Open({.layers = kLayers, .vocab = 400}, 6000); }

  void Open(const TinyModelOptions& tiny, uint64_t unit_bytes) {
    const std::string path = dir_.Path("model.gguf");
    ASSERT_THAT(WriteTinyModel(path, tiny), IsOk());
    auto model = Model::Open({.path = path, .unit_bytes = unit_bytes});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
  }

  EngineOptions Options(uint64_t seed, const Wanted& wanted,
                        DeviceFaults faults = {}) const {
    EngineOptions options =
        With(wanted, OnDeferredDevice(seed, {.faults = faults}));
    options.context = 64;
    options.batch_tokens = 16;
    options.prefetch_depth = 2;
    return options;
  }

  std::unique_ptr<Engine> MustCreate(const EngineOptions& options) const {
    auto engine = Engine::Create(model_, options);
    EXPECT_THAT(engine.status(), IsOk());
    return engine.ok() ? *std::move(engine) : nullptr;
  }

  // Of one FFN, in units.
  int64_t FfnUnits() const {
    int64_t units = 0;
    for (const auto& unit : model_->weights().matrices)
      units += !unit.empty() && unit.front().layer == 1 &&
               unit.front().kind >= MatrixKind::kGate &&
               unit.front().kind < MatrixKind::kHead;
    return units;
  }

  GenerateRequest TheRequest() const {
    GenerateRequest request;
    for (int i = 0; i < 19; ++i) request.prompt.push_back(40 + 3 * i);
    request.max_tokens = 6;
    request.sampling.temperature = 0;
    request.ignore_end_of_generation = true;
    return request;
  }

  std::vector<TokenId> TokensOf(Engine* engine) const {
    const auto session = engine->NewSession();
    const auto result = session->Generate(TheRequest(), {});
    EXPECT_THAT(result.status(), IsOk());
    return result.ok() ? result->tokens : std::vector<TokenId>{};
  }

  std::vector<TokenId> CpusTokens() const {
    EngineOptions options = OnScalarCpu();
    options.context = 64;
    options.batch_tokens = 16;
    return TokensOf(MustCreate(options).get());
  }

  TempDir dir_;
  std::shared_ptr<const Model> model_;
};

// 19 tokens of prompt: a pass of 16, which is prefill, and one of 3, which is
// decode as the five that follow.
TEST_F(SplitTest, EachPhaseComputesItsOwnFfnsOnTheCpu) {
  const std::vector<TokenId> expected = CpusTokens();
  ASSERT_EQ(expected.size(), 6u);
  struct {
    Wanted wanted;
    int64_t ffns;  // computed in all
  } const kCases[] = {
      {{.cpu_ffn = 3}, 7 * 3},
      {{.cpu_ffn = 3, .cpu_ffn_prefill = 0}, 6 * 3},
      {{.cpu_ffn = 1, .cpu_ffn_prefill = 4}, 4 + 6 * 1},
      {{.cpu_ffn = 0, .cpu_ffn_prefill = 2}, 2},
  };
  uint64_t seed = 0;
  for (const auto& each : kCases) {
    const auto engine = MustCreate(Options(++seed, each.wanted));
    EXPECT_EQ(TokensOf(engine.get()), expected) << each.wanted.Text();
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.passes, 7);
    EXPECT_EQ(stats.cpu_units, each.ffns * FfnUnits()) << each.wanted.Text();
    EXPECT_GT(stats.cpu_seconds, 0);
    EXPECT_LT(stats.cpu_seconds, stats.run_seconds);
  }
}

TEST_F(SplitTest, ADeviceAloneComputesNothingOnTheCpu) {
  const auto engine = MustCreate(Options(1, {}));
  EXPECT_EQ(TokensOf(engine.get()), CpusTokens());
  EXPECT_EQ(engine->stats().cpu_units, 0);
  EXPECT_EQ(engine->stats().cpu_seconds, 0);
  EXPECT_TRUE(engine->placement().of(Phase::kDecode).empty());
}

TEST_F(SplitTest, NoLayersOnTheDeviceIsAnEngineOnTheCpu) {
  const auto engine = MustCreate(Options(1, {.gpu_layers = 0}));
  EXPECT_STREQ(engine->device_name(), "cpu");
  EXPECT_EQ(engine->vram_plan(), nullptr);
  EXPECT_EQ(TokensOf(engine.get()), CpusTokens());
}

TEST_F(SplitTest, WithoutADeviceTheSplitIsIgnored) {
  EngineOptions options = With({.gpu_layers = 3, .cpu_ffn = 2}, OnScalarCpu());
  options.context = 64;
  options.batch_tokens = 16;
  EXPECT_EQ(TokensOf(MustCreate(options).get()), CpusTokens());
}

TEST_F(SplitTest, OptionsAreFilledInWithWhatWasChosen) {
  const auto filled = [&](const Wanted& wanted) {
    const auto plan = PlanEngine(*model_, Options(1, wanted));
    EXPECT_THAT(plan.status(), IsOk()) << wanted.Text();
    const EngineOptions& options = plan->options;
    return std::vector<int>{*options.gpu_layers, *options.cpu_layers,
                            *options.cpu_ffn, *options.cpu_ffn_prefill};
  };
  EXPECT_EQ(filled({}), (std::vector<int>{5, 0, 0, 0}));
  EXPECT_EQ(filled({.gpu_layers = 99}), (std::vector<int>{5, 0, 0, 0}));
  EXPECT_EQ(filled({.gpu_layers = 1}), (std::vector<int>{1, 4, 0, 0}));
  EXPECT_EQ(filled({.gpu_layers = 3}), (std::vector<int>{3, 2, 0, 0}));
  EXPECT_EQ(filled({.gpu_layers = 3, .cpu_layers = 2, .cpu_ffn = 9}),
            (std::vector<int>{3, 2, 2, 2}));
  EXPECT_EQ(filled({.cpu_ffn = 3, .cpu_ffn_prefill = 1}),
            (std::vector<int>{5, 0, 3, 1}));
}

TEST_F(SplitTest, CountsThatContradictOneAnotherAreRefused) {
  EXPECT_THAT(
      PlanEngine(*model_, Options(1, {.gpu_layers = 3, .cpu_layers = 1}))
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("3 layers on the GPU leave 2 of 4")));
  for (const Wanted& wanted :
       {Wanted{.gpu_layers = -1}, Wanted{.cpu_layers = -1},
        Wanted{.cpu_ffn = -2}, Wanted{.cpu_ffn_prefill = -1}}) {
    EXPECT_THAT(PlanEngine(*model_, Options(1, wanted)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected 0 or more")))
        << wanted.Text();
  }
}

// Keys and values, activations and weights are counted where they are.
TEST_F(SplitTest, ThePlansCountEachSideInItsOwnMemory) {
  const auto all = PlanEngine(*model_, Options(1, {}));
  const auto split = PlanEngine(*model_, Options(1, {.cpu_layers = 1}));
  ASSERT_THAT(all.status(), IsOk());
  ASSERT_THAT(split.status(), IsOk());
  const uint64_t kv = all->vram->fixed.kv;
  EXPECT_EQ(split->vram->fixed.kv, kv / 4 * 3);
  EXPECT_EQ(split->memory.fixed.kv, kv / 4);
  EXPECT_EQ(all->memory.fixed.kv, 0u);
  EXPECT_GT(split->memory.fixed.activations, all->memory.fixed.activations);
  const auto& units = model_->weights().units;
  for (size_t i = 0; i < units.size(); ++i) {
    const bool cpus = split->placement.EverOnCpu(static_cast<int>(i));
    EXPECT_EQ(cpus, units[i].name.starts_with("blk.0."));
    EXPECT_EQ(split->memory.resident[i], cpus || i == kVectorUnit);
    EXPECT_EQ(split->vram->resident[i], !cpus);
  }
  // None of it is copied to the device, but for the vectors.
  EXPECT_LT(split->memory.uploaded_bytes, split->memory.resident_bytes);
  EXPECT_LE(split->memory.uploaded_bytes,
            2 * units[kVectorUnit].buffer_bytes + 4096);
}

// What is the CPU's must fit in host memory: the least that does is named, and
// does.
TEST_F(SplitTest, WhatDoesNotFitInHostMemoryIsRefusedWithTheLeastThatDoes) {
  const Golden golden = GoldenNamed("llama.f32.gguf");
  EngineOptions options = With({.cpu_layers = 2}, OnDeferredDevice(1));
  options.ram_bytes = 1;
  EXPECT_THAT(
      EvaluateSmallUnits(golden, options, kChunk).status(),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("KV cache"), HasSubstr("weights"),
                     HasSubstr("raise --ram"), HasSubstr("--cpu-layers"))));
  options.ram_bytes =
      LeastBudgetOf(golden, options, "--ram", &EngineOptions::ram_bytes);
  EXPECT_THAT(EvaluateSmallUnits(golden, options, kChunk).status(), IsOk());
  options.ram_bytes -= kMiB;
  EXPECT_EQ(EvaluateSmallUnits(golden, options, kChunk).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Rates of a machine whose link is slow against its memory.
SplitRates Rates() {
  return {.upload = 10e9,
          .disk = 2e9,
          .cpu = 40e9,
          .device = 800e9,
          .cpu_tokens = 50e9,
          .device_tokens = 100000e9,
          .crossing_seconds = 0};
}

TEST_F(SplitTest, TheCostModelChoosesFfnsForDecodeAndNoneForPrefill) {
  EngineOptions options = Options(1, {});
  // Too little for the weights: half of them are uploaded in every pass.
  const auto all = PlanEngine(*model_, options);
  ASSERT_THAT(all.status(), IsOk());
  options.vram_bytes = all->vram->total() - all->vram->resident_bytes / 2;
  const auto unknown = PlanEngine(*model_, options);
  ASSERT_THAT(unknown.status(), IsOk());
  EXPECT_EQ(*unknown->options.cpu_ffn, 0);
  EXPECT_GT(unknown->vram->pass_read_bytes, 0u);

  options.split_rates = Rates();
  const auto chosen = PlanEngine(*model_, options);
  ASSERT_THAT(chosen.status(), IsOk());
  EXPECT_GT(*chosen->options.cpu_ffn, 0);
  EXPECT_EQ(*chosen->options.cpu_ffn_prefill, 0);
  EXPECT_EQ(TokensOf(MustCreate(options).get()), CpusTokens());

  // What is forced stays.
  options.cpu_ffn = 1;
  EXPECT_EQ(*PlanEngine(*model_, options)->options.cpu_ffn, 1);
  EXPECT_EQ(*PlanEngine(*model_, options)->options.cpu_ffn_prefill, 0);
  options.cpu_ffn_prefill = 1;
  EXPECT_EQ(*PlanEngine(*model_, options)->options.cpu_ffn_prefill, 1);
}

// While the CPU computes an FFN, more than two units can be copied.
TEST_F(SplitTest, MoreSlotsAreChosenWhereTheCpuTakesTurns) {
  Open({.layers = 16, .hidden = 128, .ffn = 512, .vocab = 400}, 16000);
  EngineOptions options = Options(1, {});
  const auto all = PlanEngine(*model_, options);
  ASSERT_THAT(all.status(), IsOk());
  options.vram_bytes = all->vram->total() - all->vram->resident_bytes / 4;
  options.split_rates = Rates();
  options.split_rates.upload = 25e9;
  options.prefetch_depth = kAutoPrefetchDepth;
  const SplitRates rates = options.split_rates;
  const auto chosen = PlanEngine(*model_, options);
  ASSERT_THAT(chosen.status(), IsOk());
  const int depth = chosen->options.prefetch_depth;
  EXPECT_GT(depth, 2);
  EXPECT_GT(*chosen->options.cpu_ffn, 0);
  EXPECT_EQ(TokensOf(MustCreate(options).get()), CpusTokens());
  // Every other depth is predicted to be no better by what shows.
  const auto seconds = [&](const EnginePlan& plan) {
    return PredictSplitPass({.units = model_->weights().units,
                             .vram = *plan.vram,
                             .host = plan.memory,
                             .placement = plan.placement,
                             .tokens = 1,
                             .hidden = model_->config().hidden,
                             .rates = rates})
        .seconds;
  };
  for (const int other : {2, 4, 8, 16, 32}) {
    options.prefetch_depth = other;
    const auto plan = PlanEngine(*model_, options);
    if (!plan.ok()) continue;
    EXPECT_GE(seconds(*plan), 0.97 * seconds(*chosen)) << other;
  }
  // Without rates it is one being computed, one being copied to.
  options.split_rates = {};
  options.prefetch_depth = kAutoPrefetchDepth;
  EXPECT_EQ(PlanEngine(*model_, options)->options.prefetch_depth, 2);
}

TEST_F(SplitTest, WithRoomForAllOnTheDeviceNothingIsTheCpus) {
  EngineOptions options = Options(1, {});
  options.split_rates = Rates();
  const auto plan = PlanEngine(*model_, options);
  ASSERT_THAT(plan.status(), IsOk());
  EXPECT_EQ(*plan->options.cpu_ffn, 0);
}

// Sets a flag at the nth unit of a lane.
class FlagAtUnit final : public TraceSink {
 public:
  FlagAtUnit(TraceLane lane, int nth, std::atomic<bool>* flag)
      : lane_(lane), left_(nth), flag_(flag) {}
  void Span(const TraceSpan& span) override {
    if (span.lane == lane_ && left_-- == 0) *flag_ = true;
  }
  void Count(TraceCounter, int64_t, int64_t) override {}

 private:
  const TraceLane lane_;
  std::atomic<int> left_;
  std::atomic<bool>* const flag_;
};

TEST_F(SplitTest, CancelledInTheMiddleOfTheCpusWorkItWorksAgainAfterwards) {
  const std::vector<TokenId> expected = CpusTokens();
  for (int nth = 0; nth < 12; ++nth) {
    std::atomic<bool> cancel{false};
    FlagAtUnit sink(nth % 2 == 0 ? TraceLane::kFfn : TraceLane::kAttention, nth,
                    &cancel);
    EngineOptions options = Options(1 + static_cast<uint64_t>(nth),
                                    {.cpu_layers = 1, .cpu_ffn = 2});
    options.cancel = &cancel;
    options.trace = &sink;
    const auto engine = MustCreate(options);
    {
      const auto session = engine->NewSession();
      EXPECT_EQ(session->Generate(TheRequest(), {}).status().code(),
                absl::StatusCode::kCancelled);
    }
    cancel = false;
    EXPECT_EQ(TokensOf(engine.get()), expected) << nth;
  }
}

// The reads of the first pass bring what the CPU computes too.
TEST_F(SplitTest, ADiskThatFailsIsTheRunsErrorAndHarmlessFaultsAreNone) {
  const std::vector<TokenId> expected = CpusTokens();
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    EngineOptions options = Options(seed, {.cpu_layers = 1, .cpu_ffn = 2});
    options.reader.chunk_bytes = 4096;
    options.reader.wrap_backend = [seed](std::unique_ptr<ReadBackend> inner) {
      return std::make_unique<FaultyBackend>(std::move(inner),
                                             FaultTable::Harmless(seed));
    };
    EXPECT_EQ(TokensOf(MustCreate(options).get()), expected) << seed;
    options.reader.wrap_backend = [seed](std::unique_ptr<ReadBackend> inner) {
      FaultTable table;
      table.seed = seed;
      table.weights[0] = 30;
      return std::make_unique<FaultyBackend>(std::move(inner),
                                             table.With(Fault::kIoError, 1));
    };
    const auto engine = MustCreate(options);
    // What was read stays, so that it is there after some tries.
    StatusOr<GenerateResult> result = absl::InternalError("not run");
    int failures = 0;
    for (int tries = 0; tries < 500 && !result.ok(); ++tries) {
      const auto session = engine->NewSession();
      result = session->Generate(TheRequest(), {});
      failures += !result.ok();
      if (!result.ok()) {
        EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal)
            << result.status();
      }
    }
    ASSERT_THAT(result.status(), IsOk());
    EXPECT_GT(failures, 0) << seed;
    EXPECT_EQ(result->tokens, expected) << seed;
  }
}

TEST_F(SplitTest, ADeviceThatFailsBesideTheCpuIsTheRunsError) {
  const Wanted wanted = {.cpu_layers = 1, .cpu_ffn = 2};
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    for (const int64_t operation : {0, 3, 50, 300}) {
      for (const bool copies : {false, true}) {
        DeviceFaults faults;
        (copies ? faults.fail_copies_from : faults.fail_kernels_from) =
            operation / (copies ? 10 : 1);
        const auto engine = MustCreate(Options(seed, wanted, faults));
        const auto session = engine->NewSession();
        EXPECT_EQ(session->Generate(TheRequest(), {}).status().code(),
                  absl::StatusCode::kInternal)
            << (copies ? "copy " : "kernel ") << operation << ", seed " << seed;
      }
    }
  }
}

TEST_F(SplitTest, EveryAllocationThatIsRefusedIsAnError) {
  for (int64_t call = 0;; ++call) {
    const auto engine = Engine::Create(
        model_, Options(1, {.cpu_layers = 1}, {.refuse_allocation = call}));
    if (engine.ok()) {
      EXPECT_GE(call, 3);
      break;
    }
    EXPECT_EQ(engine.status().code(), absl::StatusCode::kResourceExhausted);
  }
}

// Requests that share passes come out as they do alone on the CPU, in phases
// that differ.
TEST_F(SplitTest, SubmittedRequestsComeOutAsOnTheCpu) {
  const auto answers = [&](EngineOptions options) {
    options.context = 64;
    options.batch_tokens = 16;
    options.max_sequences = 4;
    options.logit_rows = 4;
    const auto engine = MustCreate(options);
    std::vector<std::future<RequestResult>> futures;
    for (int i = 0; i < 6; ++i) {
      Request request;
      for (int t = 0; t < 3 + 5 * i; ++t)
        request.generate.prompt.push_back(50 + (7 * i + 3 * t) % 150);
      request.generate.max_tokens = 4 + i;
      request.generate.sampling.temperature = 0;
      request.generate.ignore_end_of_generation = true;
      auto future = engine->Submit(std::move(request));
      EXPECT_THAT(future.status(), IsOk());
      futures.push_back(*std::move(future));
    }
    std::vector<std::vector<TokenId>> tokens;
    for (auto& future : futures) {
      RequestResult result = future.get();
      EXPECT_THAT(result.status, IsOk());
      tokens.push_back(result.generated.tokens);
    }
    return tokens;
  };
  const auto expected = answers(OnScalarCpu());
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    EXPECT_EQ(answers(Options(seed, {.cpu_ffn = 3, .cpu_ffn_prefill = 1})),
              expected)
        << seed;
    EXPECT_EQ(answers(Options(seed, {.cpu_layers = 2, .cpu_ffn = 1})), expected)
        << seed;
  }
}

}  // namespace
}  // namespace coldstream
