// Engines on a device bring of a row of logits only what sampling needs: the
// same tokens as with all of it, for fewer bytes that cross. Without a device,
// on one that does everything late (tests/support/deferred_device.h), by the
// CPU's operations and by CUDA's kernels under the SIMT shim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/deferred_engine.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kVocab = 400;
constexpr int64_t kGenerated = 9;
constexpr uint64_t kRowBytes = kVocab * sizeof(float);
// What a pass of CUDA's brings beside its rows: whether all was finite.
constexpr uint64_t kTagBytes = sizeof(int32_t);

enum class Kernels { kQueued, kCuda };

class LogitChoicesTest : public ::testing::TestWithParam<Kernels> {
 protected:
  void SetUp() override {
    Open({.layers = 1,
          .hidden = 32,
          .heads = 2,
          .kv_heads = 1,
          .ffn = 32,
          .vocab = kVocab});
  }
  void Open(const TinyModelOptions& tiny) {
    const std::string path = dir_.Path("model.gguf");
    ASSERT_THAT(WriteTinyModel(path, tiny), IsOk());
    auto model = Model::Open({.path = path});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
  }

  std::unique_ptr<Engine> NewEngine(EngineOptions options) const {
    options.context = 32;
    options.batch_tokens = 8;
    options.logit_rows = 4;
    options.max_sequences = 4;
    auto engine = Engine::Create(model_, options);
    EXPECT_THAT(engine.status(), IsOk());
    return engine.ok() ? *std::move(engine) : nullptr;
  }
  std::unique_ptr<Engine> OnDevice(uint64_t seed) {
    copied_ = std::make_shared<CopiedBytes>();
    EngineOptions options = OnDeferredDevice(seed, {.copied = copied_});
    if (GetParam() == Kernels::kCuda) options.gpu->kernels = CudaKernels();
    return NewEngine(options);
  }

  static Request With(const SamplingOptions& sampling) {
    Request request;
    for (int i = 0; i < 5; ++i) request.generate.prompt.push_back(40 + 3 * i);
    request.generate.max_tokens = kGenerated;
    request.generate.ignore_end_of_generation = true;
    request.generate.sampling = sampling;
    return request;
  }
  // The same, but that its scores need all logits.
  static Request Scored(Request request) {
    request.logprobs = 0;
    return request;
  }
  // Every way of sampling that some of the logits suffice for, and two that
  // need all.
  static std::vector<Request> AllKinds() {
    return {With({.temperature = 0}),
            With({.temperature = 3, .top_k = 40, .seed = 1}),
            With({.temperature = 3, .top_k = 40, .seed = 2}),
            With({.temperature = 2, .top_k = 1, .seed = 3}),
            With({.temperature = 3, .top_k = 150, .top_p = 1, .min_p = 0}),
            With({.temperature = 3, .top_k = 0, .seed = 4}),
            With({.temperature = 0, .repeat_penalty = 1.3})};
  }

  static std::vector<std::vector<TokenId>> Submitted(
      Engine* engine, const std::vector<Request>& requests) {
    std::vector<std::future<RequestResult>> futures;
    for (const Request& request : requests) {
      auto future = engine->Submit(request);
      EXPECT_THAT(future.status(), IsOk());
      futures.push_back(*std::move(future));
    }
    std::vector<std::vector<TokenId>> tokens;
    for (auto& future : futures) {
      const RequestResult result = future.get();
      EXPECT_THAT(result.status, IsOk());
      tokens.push_back(result.generated.tokens);
    }
    engine->Drain();
    return tokens;
  }

  // Bytes that came to the host for one request on its own.
  uint64_t BytesFor(const Request& request, std::vector<TokenId>* tokens) {
    const auto engine = OnDevice(3);
    const uint64_t before = copied_->to_host;
    *tokens = Submitted(engine.get(), {request}).front();
    EXPECT_EQ(engine->batch_stats().passes, kGenerated);
    return copied_->to_host - before - kGenerated * PassBytes();
  }
  uint64_t PassBytes() const {
    return GetParam() == Kernels::kCuda ? kTagBytes : 0;
  }

  TempDir dir_;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<CopiedBytes> copied_;
};

TEST_P(LogitChoicesTest, TheTokensAreThoseOfAllLogits) {
  std::vector<Request> scored;
  for (const Request& request : AllKinds()) scored.push_back(Scored(request));
  const auto expected = Submitted(OnDevice(1).get(), scored);
  for (const uint64_t seed : {1, 2, 5})
    EXPECT_EQ(Submitted(OnDevice(seed).get(), AllKinds()), expected) << seed;
  if (GetParam() == Kernels::kQueued) {
    EXPECT_EQ(Submitted(NewEngine(OnScalarCpu()).get(), AllKinds()), expected);
  }
}

// In one pass rows that are wanted whole lie beside others.
TEST_P(LogitChoicesTest, RequestsOfEveryKindShareAPass) {
  std::vector<Request> requests = AllKinds();
  const auto expected = Submitted(OnDevice(1).get(), requests);
  for (size_t i = 0; i < requests.size(); i += 2)
    requests[i] = Scored(requests[i]);
  EXPECT_EQ(Submitted(OnDevice(7).get(), requests), expected);
}

TEST_P(LogitChoicesTest, OnlyWhatSamplingNeedsCrosses) {
  std::vector<TokenId> tokens, all;
  const auto bytes = [](int64_t choices) {
    return static_cast<uint64_t>(kGenerated * choices) * sizeof(LogitChoice);
  };
  const Request greedy = With({.temperature = 0});
  EXPECT_EQ(BytesFor(greedy, &tokens), bytes(1));
  EXPECT_EQ(BytesFor(Scored(greedy), &all), kGenerated * kRowBytes);
  EXPECT_EQ(tokens, all);
  const Request top = With({.temperature = 3, .top_k = 40, .seed = 9});
  EXPECT_EQ(BytesFor(top, &tokens), bytes(40));
  EXPECT_EQ(BytesFor(Scored(top), &all), kGenerated * kRowBytes);
  EXPECT_EQ(tokens, all);
  // Whole rows: fewer bytes than the choices, and what a penalty needs.
  EXPECT_EQ(BytesFor(With({.top_k = kVocab / 2}), &tokens),
            kGenerated * kRowBytes);
  EXPECT_EQ(BytesFor(With({.temperature = 0, .repeat_penalty = 1.1}), &tokens),
            kGenerated * kRowBytes);
}

TEST_P(LogitChoicesTest, ASessionsTextIsTheSameToo) {
  for (const Request& request : AllKinds()) {
    const auto expected = Submitted(OnDevice(1).get(), {request}).front();
    const auto engine = OnDevice(2);
    const uint64_t before = copied_->to_host;
    const auto result = engine->NewSession()->Generate(request.generate, {});
    ASSERT_THAT(result.status(), IsOk());
    EXPECT_EQ(result->tokens, expected);
    if (request.generate.sampling.temperature == 0 &&
        request.generate.sampling.repeat_penalty == 1) {
      EXPECT_EQ(copied_->to_host - before,
                kGenerated * (sizeof(LogitChoice) + PassBytes()));
    }
  }
}

// The scale of the logits alone is out of range: what crosses would look like
// a choice.
TEST_P(LogitChoicesTest, LogitsThatAreNotFiniteAreAnErrorAllTheSame) {
  Open({.architecture = "command-r",
        .layers = 1,
        .hidden = 32,
        .heads = 2,
        .kv_heads = 1,
        .ffn = 32,
        .vocab = kVocab,
        .tied = true,
        .metadata = {{"command-r.logit_scale", GgufValue(3e38f)}}});
  for (const Request& request : AllKinds()) {
    const auto result =
        OnDevice(1)->NewSession()->Generate(request.generate, {});
    EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kInternal,
                                          HasSubstr("logits are not finite")));
  }
}

INSTANTIATE_TEST_SUITE_P(All, LogitChoicesTest,
                         ::testing::Values(Kernels::kQueued, Kernels::kCuda),
                         [](const auto& kernels) {
                           return kernels.param == Kernels::kCuda ? "Cuda"
                                                                  : "Queued";
                         });

}  // namespace
}  // namespace coldstream
