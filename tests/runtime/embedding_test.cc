// Requests for embeddings: the vectors are what the head makes the logits of,
// and come out the same in any company, chunks and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ops.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "tests/runtime/tiny_engine_test.h"
#include "tests/support/golden_hidden.h"
#include "tests/support/golden_models.h"
#include "tests/support/same_bits.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Request Embedding(std::vector<TokenId> tokens, Pooling pooling,
                  VectorLength length = VectorLength::kAsItIs) {
  Request request;
  request.generate.prompt = std::move(tokens);
  request.embed = EmbedOptions{.pooling = pooling, .length = length};
  return request;
}

EngineOptions OnCpu(Isa isa) {
  EngineOptions options;
  options.ram_bytes = kGiB;
  options.threads = 2;
  options.isa = isa;
  return options;
}

class GoldenEmbeddingTest : public ::testing::TestWithParam<Golden> {};

// Bound: that of the model's logits (tests/golden/README.md); here the head
// is exact, so that its part of the error is not even there.
TEST_P(GoldenEmbeddingTest, TheHeadMakesTheIndependentEnginesLogitsOfThem) {
  const Golden& golden = GetParam();
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (!OpsFor(isa).ok()) continue;
    const auto hidden = HiddenStates(golden, OnCpu(isa));
    ASSERT_THAT(hidden.status(), IsOk());
    const double nmse =
        Nmse(LogitsOfHidden(golden, *hidden), ExactLogits(golden));
    EXPECT_LE(nmse, golden.bound()) << IsaName(isa);
    std::printf("%s %s: nmse %.3g, %.2f of the bound\n", golden.file.c_str(),
                IsaName(isa), nmse, nmse / golden.bound());
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenEmbeddingTest,
                         ::testing::ValuesIn(LoadGoldens()),
                         [](const auto& golden) {
                           return TestNameOf(golden.param);
                         });

// A product of k floats is off by k u / (1 - k u) of the sum of magnitudes at
// most, u = 2^-24, in whatever order it is summed.
// Source: Higham, "Accuracy and Stability of Numerical Algorithms",
// section 3.1.
TEST(EmbeddingTest, TheyAreWhatTheHeadOfTheSameEngineTakes) {
  for (const Golden& golden : LoadGoldens()) {
    if (golden.file != "llama.f32.gguf") continue;
    const auto head = HeadOf(**Model::Open({.path = golden.path()}));
    const auto logits = EvaluateGolden(golden, OnCpu(Isa::kScalar), 5);
    ASSERT_THAT(logits.status(), IsOk());
    const auto states = HiddenStates(golden, OnCpu(Isa::kScalar));
    ASSERT_THAT(states.status(), IsOk());
    const auto& hidden = *states;
    for (size_t t = 0; t < hidden.size(); ++t) {
      for (size_t r = 0; r < head.size(); ++r) {
        double sum = 0, magnitudes = 0;
        for (size_t i = 0; i < hidden[t].size(); ++i) {
          const double product = static_cast<double>(head[r][i]) *
                                 static_cast<double>(hidden[t][i]);
          sum += product;
          magnitudes += std::fabs(product);
        }
        const double ku =
            std::ldexp(static_cast<double>(hidden[t].size()), -24);
        const double logit =
            static_cast<double>((*logits)[t * head.size() + r]);
        ASSERT_LE(std::fabs(logit - sum), magnitudes * ku / (1 - ku))
            << "token " << t << ", row " << r;
      }
    }
    return;
  }
  FAIL() << "there is no llama.f32.gguf";
}

class TinyEmbeddingTest : public TinyEngineTest {
 protected:
  RequestResult Run(const Request& request, const EngineOptions& options) {
    return NewEngine(options)->Submit(request)->get();
  }
  std::vector<float> Vector(const Request& request) {
    RequestResult result = Run(request, Options());
    EXPECT_THAT(result.status, IsOk());
    return std::move(result.embedding);
  }

  // Fills a tensor of the file with NaNs.
  void Damage(const std::string& tensor) {
    const auto found = model_->checkpoint().Get(tensor);
    ASSERT_THAT(found.status(), IsOk());
    const std::vector<float> nans((*found)->extent.length / sizeof(float),
                                  std::numeric_limits<float>::quiet_NaN());
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>((*found)->extent.offset));
    file.write(reinterpret_cast<const char*>(nans.data()),
               static_cast<std::streamsize>(nans.size() * sizeof(float)));
    file.close();
    ASSERT_TRUE(file.good());
    Reopen();
  }
};

TEST_F(TinyEmbeddingTest, TheMeanIsThatOfEveryTokensState) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < 100; ++i)
    tokens.push_back(static_cast<TokenId>(65 + 7 * i % 30));
  const auto engine = NewEngine(Options());
  std::vector<double> sum(64);
  for (size_t n = 1; n <= tokens.size(); ++n) {
    std::vector<TokenId> begin(tokens.begin(),
                               tokens.begin() + static_cast<int64_t>(n));
    const RequestResult result =
        engine->Submit(Embedding(begin, Pooling::kLast))->get();
    ASSERT_THAT(result.embedding, SizeIs(64));
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += static_cast<double>(result.embedding[i]);
  }
  std::vector<float> mean;
  for (const double value : sum)
    mean.push_back(static_cast<float>(value / 100));
  EXPECT_TRUE(SameBits(Vector(Embedding(tokens, Pooling::kMean)), mean));
}

TEST_F(TinyEmbeddingTest, TheFirstTokenKnowsNoOther) {
  const auto cls = Vector(Embedding({70, 71, 72}, Pooling::kCls));
  EXPECT_TRUE(SameBits(cls, Vector(Embedding({70}, Pooling::kLast))));
  const RequestResult result =
      Run(Embedding(std::vector<TokenId>(200, 66), Pooling::kCls), Options());
  EXPECT_EQ(result.prompt_tokens, 200);
  EXPECT_THAT(result.generated.tokens, IsEmpty());
}

TEST_F(TinyEmbeddingTest, EachComesOutAsAloneInAnyCompanyChunksAndMemory) {
  std::mt19937 random(7);
  const auto below = [&](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  constexpr size_t kRequests = 30;
  std::vector<Request> requests;
  for (size_t i = 0; i < kRequests; ++i) {
    // Of few kinds, so that beginnings are shared.
    std::vector<TokenId> tokens(static_cast<size_t>(1 + below(250)),
                                static_cast<TokenId>(65 + below(2)));
    tokens.back() = static_cast<TokenId>(65 + below(20));
    const Pooling kinds[] = {Pooling::kMean, Pooling::kLast, Pooling::kCls};
    Request request =
        Embedding(std::move(tokens), kinds[below(3)],
                  below(2) == 0 ? VectorLength::kOne : VectorLength::kAsItIs);
    if (below(4) == 0) {  // one that answers, for company
      request.embed.reset();
      request.generate.max_tokens = 5;
      request.logprobs = 0;
      request.echo = true;
    }
    requests.push_back(std::move(request));
  }
  EngineOptions alone = Options();
  alone.max_sequences = 1;
  alone.batch_tokens = 256;
  std::vector<std::vector<float>> expected;
  for (const Request& request : requests)
    expected.push_back(Run(request, alone).embedding);

  std::vector<EngineOptions> settings(4, Options());
  settings[1].batch_tokens = 13;
  settings[1].max_sequences = 5;
  settings[1].kv_tokens = 5 * 64;  // they have to make room
  settings[2].max_sequences = 1;
  settings[2].batch_tokens = 7;
  settings[3] = Streamed(settings[3]);
  int64_t put_back = 0, reused = 0;
  for (const EngineOptions& options : settings) {
    const auto engine = NewEngine(options);
    std::vector<std::future<RequestResult>> futures;
    for (const Request& request : requests)
      futures.push_back(*engine->Submit(request));
    for (size_t i = 0; i < kRequests; ++i) {
      const RequestResult result = futures[i].get();
      ASSERT_THAT(result.status, IsOk());
      EXPECT_EQ(result.embedding.empty(), !requests[i].embed.has_value());
      EXPECT_TRUE(SameBits(result.embedding, expected[i])) << i;
      if (!requests[i].embed) continue;
      put_back += result.put_back;
      reused += result.reused_tokens;
    }
  }
  // Else it says little.
  EXPECT_GT(put_back, 0);
  EXPECT_GT(reused, 0);
}

TEST_F(TinyEmbeddingTest, TheHeadIsNotComputed) {
  Open({.layers = 1, .type = DType::kF32});
  Damage("output.weight");
  EXPECT_THAT(Vector(Embedding({65, 66}, Pooling::kMean)), SizeIs(64));
  Request answer;
  answer.generate.prompt = {65, 66};
  EXPECT_THAT(Run(answer, Options()).status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("logits")));
}

TEST_F(TinyEmbeddingTest, StatesThatAreNotFiniteAreAnErrorThatSaysSo) {
  Damage("output_norm.weight");
  EXPECT_THAT(Run(Embedding({65, 66}, Pooling::kLast), Options()).status,
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("hidden states are not finite")));
}

TEST_F(TinyEmbeddingTest, WithoutAPoolingItIsTheModels) {
  Request request = Embedding({65, 66, 67}, Pooling::kLast);
  const auto last = Vector(request);
  request.embed->pooling = Pooling::kMean;
  const auto mean = Vector(request);
  request.embed->pooling = std::nullopt;
  EXPECT_TRUE(SameBits(Vector(request), mean));
  Open({.layers = 3, .metadata = {{"llama.pooling_type", int64_t{3}}}});
  EXPECT_TRUE(SameBits(Vector(request), last));
  Open({.layers = 3, .metadata = {{"llama.pooling_type", int64_t{0}}}});
  EXPECT_THAT(NewEngine(Options())->Submit(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("llama.pooling_type is 0")));
}

TEST_F(TinyEmbeddingTest, WhatIsWrongWithARequestIsSaidAndNothingTaken) {
  const auto engine = NewEngine(Options());
  const auto refusal = [&](const auto& change) {
    Request request = Embedding({65}, Pooling::kCls);
    change(&request);
    const auto id = engine->Submit(request, {});
    EXPECT_EQ(id.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(id.status().message());
  };
  EXPECT_THAT(refusal([](Request* r) { r->generate.prompt.clear(); }),
              HasSubstr("the prompt is empty"));
  EXPECT_THAT(refusal([](Request* r) { r->generate.prompt.resize(257, 65); }),
              HasSubstr("257 tokens but the context has room for 256"));
  EXPECT_THAT(refusal([](Request* r) { r->generate.prompt.push_back(-1); }),
              HasSubstr("token id -1"));
  EXPECT_THAT(refusal([](Request* r) { r->logprobs = 0; }),
              HasSubstr("no logprobs"));
  EXPECT_THAT(refusal([](Request* r) { r->echo = true; }),
              HasSubstr("no echo"));
  EXPECT_EQ(engine->batch_stats().submitted, 0);
}

}  // namespace
}  // namespace coldstream
