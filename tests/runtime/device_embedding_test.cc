// Embeddings of engines on a device that does everything late and in any legal
// order (tests/support/deferred_device.h), with and without the CPU beside it:
// its operations are the CPU's, so the bits must be, too.
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/deferred_engine.h"
#include "tests/support/named_budget.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

constexpr int64_t kLayers = 4;

class DeviceEmbeddingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = dir_.Path("model.gguf");
    ASSERT_THAT(WriteTinyModel(path, {.layers = kLayers}), IsOk());
    auto model = Model::Open({.path = path, .unit_bytes = 6000});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
  }

  StatusOr<std::unique_ptr<Engine>> Create(EngineOptions options) const {
    options.context = 64;
    options.batch_tokens = 16;
    options.max_sequences = 4;
    options.prefetch_depth = 2;
    return Engine::Create(model_, options);
  }

  // The vectors of texts of several lengths and poolings, among requests that
  // answer and so want logits in the same passes.
  std::vector<std::vector<float>> Vectors(const EngineOptions& options) const {
    auto engine = Create(options);
    EXPECT_THAT(engine.status(), IsOk());
    if (!engine.ok()) return {};
    std::vector<std::future<RequestResult>> futures;
    for (int i = 0; i < 12; ++i) {
      Request request;
      for (int t = 0; t < 1 + 5 * i; ++t)
        request.generate.prompt.push_back(50 + (7 * i + 3 * t) % 150);
      request.generate.max_tokens = 6;
      request.generate.ignore_end_of_generation = true;
      if (i % 4 != 3) request.embed = EmbedOptions{.pooling = kPoolings[i % 4]};
      futures.push_back(*(*engine)->Submit(std::move(request)));
    }
    std::vector<std::vector<float>> vectors;
    for (auto& future : futures) {
      RequestResult result = future.get();
      EXPECT_THAT(result.status, IsOk());
      vectors.push_back(std::move(result.embedding));
    }
    return vectors;
  }

  // As many weights as possible are uploaded in each pass.
  EngineOptions WithLeastMemory(EngineOptions options) const {
    options.vram_bytes = 1;
    options.vram_bytes = NamedBudget(Create(options).status(), "--vram");
    return options;
  }

  static constexpr Pooling kPoolings[] = {Pooling::kMean, Pooling::kLast,
                                          Pooling::kCls};
  TempDir dir_;
  std::shared_ptr<const Model> model_;
};

TEST_F(DeviceEmbeddingTest, HiddenStatesComeHomeWithTheCpusBits) {
  const auto expected = Vectors(OnScalarCpu());
  ASSERT_EQ(expected[0].size(), 64u);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    EXPECT_EQ(Vectors(OnDeferredDevice(seed)), expected) << seed;
    EXPECT_EQ(Vectors(WithLeastMemory(OnDeferredDevice(seed))), expected)
        << seed;
  }
}

// The last layer's FFN is the CPU's in passes of few tokens, of many, or both.
TEST_F(DeviceEmbeddingTest, HiddenStatesOfTheCpuBesideItGoThroughItsNorm) {
  const auto expected = Vectors(OnScalarCpu());
  uint64_t seed = 20;
  for (const int decode : {0, static_cast<int>(kLayers)}) {
    for (const int prefill : {0, static_cast<int>(kLayers)}) {
      EngineOptions options = OnDeferredDevice(++seed);
      options.cpu_ffn = decode;
      options.cpu_ffn_prefill = prefill;
      if (decode < prefill) continue;  // not on the CPU to begin with
      EXPECT_EQ(Vectors(options), expected) << decode << ", " << prefill;
    }
  }
  EngineOptions options = OnDeferredDevice(++seed);
  options.cpu_layers = static_cast<int>(kLayers);
  EXPECT_EQ(Vectors(options), expected);
}

TEST_F(DeviceEmbeddingTest, ADeviceThatFailsInMidPassIsTheRequestsError) {
  for (const int64_t copy : {0, 1, 5}) {
    EngineOptions options =
        OnDeferredDevice(3, {.faults = {.fail_copies_from = copy}});
    options.context = 64;
    auto engine = Engine::Create(model_, options);
    ASSERT_THAT(engine.status(), IsOk());
    Request request;
    request.generate.prompt = {65, 66, 67};
    request.embed = EmbedOptions{.pooling = Pooling::kMean};
    const RequestResult result = (*engine)->Submit(request)->get();
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal) << copy;
    EXPECT_TRUE(result.embedding.empty());
  }
}

}  // namespace
}  // namespace coldstream
