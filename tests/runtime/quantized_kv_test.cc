// Engines whose KV cache is of q8_0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "runtime/engine.h"
#include "tests/runtime/tiny_engine_test.h"
#include "tests/support/deferred_engine.h"
#include "tests/support/golden_models.h"
#include "tests/support/same_bits.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

EngineOptions Quantized(EngineOptions options) {
  options.kv_type = KvType::kQ8_0;
  return options;
}

// Keys and values are two of the inputs that the products of a q8_0 model
// quantise in the same way, seven a layer: they may not add more than those.
TEST(QuantizedKvTest, GoldenLogitsAreWithinQ8RoundingInEveryChunking) {
  const double quantized = GoldenNamed("llama.q8_0.gguf").bound();
  for (const Golden& golden : LoadGoldens()) {
    const auto all = static_cast<int64_t>(golden.ids.size());
    const auto halves = EvaluateGolden(golden, OnScalarCpu(), all);
    const auto logits = EvaluateGolden(golden, Quantized(OnScalarCpu()), all);
    ASSERT_THAT(logits.status(), IsOk());
    const double nmse = Nmse(*logits, ExactLogits(golden));
    std::printf("%s: nmse %.3g\n", golden.file.c_str(), nmse);
    EXPECT_LE(nmse, golden.bound() + quantized) << golden.file;
    EXPECT_GT(Nmse(*logits, *halves), 0) << golden.file;
    for (const int64_t chunk : {1, 7}) {
      const auto chunked =
          EvaluateGolden(golden, Quantized(OnScalarCpu()), chunk);
      ASSERT_THAT(chunked.status(), IsOk());
      EXPECT_TRUE(SameBits(*chunked, *logits)) << golden.file << ", " << chunk;
    }
  }
}

TEST(QuantizedKvTest, ADeviceGivesTheBitsOfTheCpu) {
  const Golden golden = GoldenNamed("llama.q4_k_m.gguf");
  const auto cpu = EvaluateSmallUnits(golden, Quantized(OnScalarCpu()), 7);
  ASSERT_THAT(cpu.status(), IsOk());
  for (const int cpu_layers : {0, 1}) {
    EngineOptions options = Quantized(OnDeferredDevice(3));
    options.cpu_layers = cpu_layers;
    const auto device = EvaluateSmallUnits(golden, options, 7);
    ASSERT_THAT(device.status(), IsOk());
    EXPECT_TRUE(SameBits(*device, *cpu)) << cpu_layers << " on the CPU";
  }
}

using QuantizedKvEngineTest = TinyEngineTest;

TEST_F(QuantizedKvEngineTest, ThePlanCountsItsBytes) {
  Open({.layers = 3, .head_dim = 64});
  EngineOptions options = Options();
  const uint64_t halves = NewEngine(options)->plan().fixed.kv;
  const auto engine = NewEngine(Quantized(options));
  // Of 64 values: a byte each and two scales, in place of two bytes each.
  EXPECT_EQ(engine->plan().fixed.kv * 128, halves * 68);
}

TEST_F(QuantizedKvEngineTest, HeadsWiderThanItsKernelsTakeAreRefused) {
  Open({.layers = 1, .heads = 1, .kv_heads = 1, .head_dim = 544});
  EXPECT_THAT(Engine::Create(model_, Options()).status(), IsOk());
  EXPECT_THAT(Engine::Create(model_, Quantized(Options())).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       ::testing::HasSubstr("heads of 544 values, at most 512 "
                                            "with a KV cache of q8_0")));
}

}  // namespace
}  // namespace coldstream
