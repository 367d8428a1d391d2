// Golden models on the CUDA kernels, without a GPU: the same .cu sources under
// the SIMT shim, on a device that does everything late and in any legal order.
// Logits within the golden bound, and with weights that are uploaded the same
// bits as with resident ones; and the same tokens where only the best of the
// logits cross to the host.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_units.h"
#include "tests/support/deferred_device.h"
#include "tests/support/golden_hidden.h"
#include "tests/support/golden_models.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

constexpr uint64_t kUnitBytes = 60000;

EngineOptions OnDevice(uint64_t seed) {
  EngineOptions options;
  options.gpu = std::make_shared<ComputeDevice>(
      ComputeDevice{CreateDeferredDevice({.seed = seed}), CudaKernels()});
  options.ram_bytes = 1024 * kMiB;
  options.vram_bytes = 1024 * kMiB;
  options.staging_bytes = 2 * 65536;
  options.threads = 2;
  return options;
}

class CudaGoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(CudaGoldenTest, LogitsMatchAndDoNotDependOnWhereWeightsAre) {
  const Golden& golden = GetParam();
  if (kSanitized && golden.file != "llama.q4_k_m.gguf")
    GTEST_SKIP() << "slow under a sanitizer: one model there; kernels/cuda "
                    "tests cover the types";
  const std::vector<float> exact = ExactLogits(golden);
  const auto all = static_cast<int64_t>(golden.ids.size());
  for (const int64_t chunk : {int64_t{1}, int64_t{7}, all}) {
    const auto resident =
        EvaluateGolden(golden, OnDevice(1), chunk, kUnitBytes);
    ASSERT_THAT(resident.status(), IsOk());
    const double nmse = Nmse(*resident, exact);
    EXPECT_LE(nmse, golden.bound()) << "chunks of " << chunk;
    std::printf("%s, chunks of %d: nmse %.3g, %.2f of the bound\n",
                golden.file.c_str(), static_cast<int>(chunk), nmse,
                nmse / golden.bound());
    if (chunk != 7) continue;  // a pass of each kind is enough
    for (const int slots : {1, 2, 3}) {
      EngineOptions options = OnDevice(static_cast<uint64_t>(10 + slots));
      options.prefetch_depth = slots;
      options.vram_bytes = LeastVram(golden, options, kUnitBytes);
      if (slots == 2) options.ram_bytes = 300 * kMiB;
      const auto streamed = EvaluateGolden(golden, options, chunk, kUnitBytes);
      ASSERT_THAT(streamed.status(), IsOk());
      EXPECT_EQ(std::memcmp(streamed->data(), resident->data(),
                            resident->size() * sizeof(float)),
                0)
          << "chunks of " << chunk << ", " << slots << " slots";
    }
  }
}

// Tokens for three requests that share their passes.
std::vector<std::vector<TokenId>> Generated(const Golden& golden,
                                            EngineOptions options,
                                            std::optional<int> logprobs) {
  auto model = Model::Open({.path = golden.path(), .unit_bytes = kUnitBytes});
  EXPECT_THAT(model.status(), IsOk());
  options.context = 64;
  options.batch_tokens = 8;
  options.logit_rows = 3;
  options.max_sequences = 3;
  auto engine = Engine::Create(*model, options);
  EXPECT_THAT(engine.status(), IsOk());
  std::vector<std::future<RequestResult>> futures;
  for (const SamplingOptions& sampling : std::vector<SamplingOptions>{
           {.temperature = 0}, {.temperature = 1.5, .seed = 1}, {.seed = 2}}) {
    Request request;
    request.generate.prompt.assign(golden.ids.begin(), golden.ids.begin() + 6);
    request.generate.max_tokens = 5;
    request.generate.sampling = sampling;
    request.generate.ignore_end_of_generation = true;
    request.logprobs = logprobs;
    futures.push_back(*(*engine)->Submit(request));
  }
  std::vector<std::vector<TokenId>> tokens;
  for (auto& future : futures) {
    const RequestResult result = future.get();
    EXPECT_THAT(result.status, IsOk());
    tokens.push_back(result.generated.tokens);
  }
  return tokens;
}

// Scores need all logits.
TEST_P(CudaGoldenTest, TheBestLogitsGiveTheTokensOfAllOfThem) {
  const Golden& golden = GetParam();
  if (kSanitized && golden.file != "llama.q4_k_m.gguf")
    GTEST_SKIP() << "slow under a sanitizer: one model there";
  EXPECT_EQ(Generated(golden, OnDevice(1), std::nullopt),
            Generated(golden, OnDevice(2), 0));
}

INSTANTIATE_TEST_SUITE_P(All, CudaGoldenTest,
                         ::testing::ValuesIn(LoadGoldens()),
                         [](const auto& golden) {
                           return TestNameOf(golden.param);
                         });

// As tests/runtime/quantized_kv_test.cc has it for the CPU.
TEST(CudaQuantizedKvTest, LogitsAreWithinQ8Rounding) {
  const double quantized = GoldenNamed("llama.q8_0.gguf").bound();
  const Golden llama = GoldenNamed("llama.q4_k_m.gguf");
  EngineOptions options = OnDevice(1);
  options.kv_type = KvType::kQ8_0;
  const auto logits = EvaluateGolden(llama, options, 7, kUnitBytes);
  ASSERT_THAT(logits.status(), IsOk());
  const double nmse = Nmse(*logits, ExactLogits(llama));
  std::printf("nmse %.3g\n", nmse);
  EXPECT_LE(nmse, llama.bound() + quantized);
}

// A model of each kind of norm, and of its ids the first few: the kernels'
// threads are slow here.
TEST(CudaHiddenTest, HiddenStatesMakeTheLogitsAndDoNotDependOnMemory) {
  int models = 0;
  for (const Golden& golden : LoadGoldens()) {
    if (golden.file != "llama.q4_k_m.gguf" &&
        (kSanitized || golden.file != "command-r.f16.gguf"))
      continue;
    ++models;
    Golden beginning = golden;
    beginning.ids.resize(12);
    const auto resident = HiddenStates(beginning, OnDevice(1), kUnitBytes);
    ASSERT_THAT(resident.status(), IsOk());
    EXPECT_LE(
        Nmse(LogitsOfHidden(beginning, *resident), ExactLogits(beginning)),
        golden.bound())
        << golden.file;
    EngineOptions options = OnDevice(2);
    options.prefetch_depth = 2;
    // Of all its ids, which is as much as these sequences take.
    options.vram_bytes = LeastVram(golden, options, kUnitBytes);
    const auto streamed = HiddenStates(beginning, options, kUnitBytes);
    ASSERT_THAT(streamed.status(), IsOk());
    EXPECT_EQ(*streamed, *resident) << golden.file;
  }
  EXPECT_EQ(models, kSanitized ? 1 : 2);
}

}  // namespace
}  // namespace coldstream
