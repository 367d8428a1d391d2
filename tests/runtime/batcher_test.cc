// Many requests on one engine: each comes out as it does alone, whatever else
// runs, in whatever order and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/runtime/tiny_engine_test.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class BatcherTest : public TinyEngineTest {
 protected:
  Request RandomRequest(std::mt19937* random) const {
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>((*random)() % static_cast<uint64_t>(n));
    };
    Request request;
    GenerateRequest& generate = request.generate;
    // Of few kinds, so that beginnings are shared.
    const auto kind = static_cast<TokenId>(65 + below(3));
    generate.prompt.assign(static_cast<size_t>(1 + below(150)), kind);
    generate.prompt.back() = static_cast<TokenId>(65 + below(20));
    generate.max_tokens = below(60);
    generate.ignore_end_of_generation = below(4) != 0;
    generate.sampling.temperature = below(2) == 0 ? 0 : 0.9;
    generate.sampling.repeat_penalty = below(2) == 0 ? 1.0 : 1.3;
    generate.sampling.seed = static_cast<uint64_t>(below(1000));
    if (below(4) == 0) generate.stop = {"a", "e"};
    if (below(3) == 0) request.logprobs = static_cast<int>(below(4));
    request.echo = below(2) == 0;
    return request;
  }

  // By a session on an engine of its own.
  GenerateResult Alone(const Request& request) const {
    EngineOptions options = Options();
    options.max_sequences = 1;
    options.kv_type = kv_type_;
    const auto engine = NewEngine(options);
    auto result = engine->NewSession()->Generate(request.generate, {});
    EXPECT_THAT(result.status(), IsOk());
    return *std::move(result);
  }

  static void ExpectSame(const GenerateResult& a, const GenerateResult& b) {
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.finish, b.finish);
  }
  static bool SameBits(const std::vector<TokenScore>& a,
                       const std::vector<TokenScore>& b) {
    const auto same = [](const TokenProbability& x, const TokenProbability& y) {
      return x.id == y.id && x.log_probability == y.log_probability;
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const TokenScore& x, const TokenScore& y) {
                        return same(x.token, y.token) &&
                               std::equal(x.best.begin(), x.best.end(),
                                          y.best.begin(), y.best.end(), same);
                      });
  }

  KvType kv_type_ = KvType::kF16;
};

class KvTypeTest : public BatcherTest,
                   public ::testing::WithParamInterface<KvType> {
 protected:
  KvTypeTest() { kv_type_ = GetParam(); }
};

TEST_P(KvTypeTest, EveryRequestComesOutAsAloneInAnyCompany) {
  std::mt19937 random(5);
  constexpr size_t kRequests = 24;
  std::vector<Request> requests;
  std::vector<GenerateResult> alone;
  for (size_t i = 0; i < kRequests; ++i) {
    requests.push_back(RandomRequest(&random));
    alone.push_back(Alone(requests.back()));
  }
  std::vector<EngineOptions> settings = {Options(), Options(), Options(),
                                         Streamed(Options())};
  settings[1].max_sequences = 1;
  settings[2].max_sequences = 5;
  settings[2].batch_tokens = 13;
  settings[2].kv_tokens = 5 * 64;  // they have to make room
  std::vector<std::vector<TokenScore>> scores;
  int64_t put_back = 0, reused = 0;
  for (EngineOptions options : settings) {
    options.kv_type = kv_type_;
    const auto engine = NewEngine(options);
    std::vector<size_t> order(kRequests);
    for (size_t i = 0; i < kRequests; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::future<RequestResult>> futures(kRequests);
    for (const size_t i : order) {
      auto future = engine->Submit(requests[i]);
      ASSERT_THAT(future.status(), IsOk());
      futures[i] = *std::move(future);
    }
    for (size_t i = 0; i < kRequests; ++i) {
      RequestResult result = futures[i].get();
      ASSERT_THAT(result.status, IsOk());
      ExpectSame(result.generated, alone[i]);
      const auto prompt = static_cast<size_t>(result.prompt_tokens);
      const bool scored = requests[i].logprobs.has_value();
      EXPECT_THAT(result.prompt_scores,
                  SizeIs(scored && requests[i].echo ? prompt - 1 : 0));
      EXPECT_THAT(result.generated_scores,
                  SizeIs(scored ? result.generated.tokens.size() : 0));
      std::vector<TokenScore> all = std::move(result.prompt_scores);
      all.insert(all.end(), result.generated_scores.begin(),
                 result.generated_scores.end());
      if (scores.size() < kRequests) scores.push_back(all);
      EXPECT_TRUE(SameBits(all, scores[i])) << i;
      put_back += result.put_back;
      reused += result.reused_tokens;
    }
    engine->Drain();
    const BatchStats stats = engine->batch_stats();
    EXPECT_EQ(stats.finished, static_cast<int64_t>(kRequests));
    EXPECT_EQ(stats.running + stats.waiting + stats.failed, 0);
  }
  EXPECT_GT(put_back, 0);
  EXPECT_GT(reused, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, KvTypeTest,
                         ::testing::Values(KvType::kF16, KvType::kQ8_0),
                         [](const auto& type) { return NameOf(type.param); });

TEST_F(BatcherTest, ScoresAreThoseOfTheLogits) {
  Request request;
  request.generate.prompt = {72, 101, 108, 108, 111};
  request.generate.max_tokens = 0;
  request.logprobs = 2;
  request.echo = true;
  const auto engine = NewEngine(Options());
  const RequestResult result = (*engine->Submit(request)).get();
  ASSERT_THAT(result.status, IsOk());
  std::vector<TokenScore> expected;
  EngineOptions options = Options();
  options.logit_rows = 5;
  const auto other = NewEngine(options);
  ASSERT_THAT(
      other->NewSession()->Evaluate(
          request.generate.prompt, 5, Session::Logits::kAll,
          [&](int64_t index, std::span<const float> logits) {
            if (index < 4) {
              expected.push_back(ScoreToken(
                  logits.first(static_cast<size_t>(model_->vocab_size())),
                  request.generate.prompt[static_cast<size_t>(index) + 1], 2));
            }
            return absl::OkStatus();
          }),
      IsOk());
  EXPECT_THAT(result.prompt_scores, SizeIs(4));
  EXPECT_TRUE(SameBits(result.prompt_scores, expected));
  EXPECT_EQ(result.generated.finish, FinishReason::kLength);
}

TEST_F(BatcherTest, TextComesInPiecesThatMakeTheWhole) {
  const auto engine = NewEngine(Options());
  Request request;
  request.generate.prompt = {72, 101};
  request.generate.max_tokens = 20;
  request.generate.ignore_end_of_generation = true;
  std::string text;
  std::promise<RequestResult> done;
  ASSERT_THAT(
      engine
          ->Submit(request,
                   {.on_text =
                        [&](std::string_view piece) {
                          text += piece;
                          return true;
                        },
                    .on_done = [&](RequestResult r) { done.set_value(r); }})
          .status(),
      IsOk());
  EXPECT_EQ(done.get_future().get().generated.text, text);
}

// 2000 requests from four threads, a queue of 8: each ends once.
TEST_F(BatcherTest, ProducersWaitForTheQueueAndEveryRequestEndsOnce) {
  EngineOptions options = Options();
  options.queue_length = 8;
  const auto engine = NewEngine(options);
  const int kEach = kSanitized ? 50 : 500;
  std::vector<std::atomic<int>> ended(static_cast<size_t>(4 * kEach));
  std::atomic<int64_t> most_waiting{0};
  std::vector<std::thread> producers;
  for (int producer = 0; producer < 4; ++producer) {
    producers.emplace_back([&, producer] {
      for (int i = 0; i < kEach; ++i) {
        Request request;
        request.generate.prompt = {static_cast<TokenId>(65 + i % 20)};
        request.generate.max_tokens = 1 + i % 3;
        auto& mine = ended[static_cast<size_t>(producer * kEach + i)];
        ASSERT_THAT(
            engine
                ->Submit(request, {.on_text = {},
                                   .on_done = [&](RequestResult) { ++mine; }})
                .status(),
            IsOk());
        const int64_t waiting = engine->batch_stats().waiting;
        int64_t most = most_waiting;
        while (waiting > most &&
               !most_waiting.compare_exchange_weak(most, waiting)) {
        }
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  engine->Drain();
  for (const auto& times : ended) EXPECT_EQ(times, 1);
  EXPECT_LE(most_waiting, 8);
}

TEST_F(BatcherTest, AFullQueueRefusesWhereAsked) {
  EngineOptions options = Options();
  options.queue_length = 2;
  options.max_sequences = 1;
  const auto engine = NewEngine(options);
  std::promise<void> go;
  const std::shared_future<void> wait = go.get_future().share();
  Request request;
  request.generate.prompt = {72};
  request.generate.max_tokens = 1;
  // Holds the engine up as soon as it has begun.
  std::promise<void> begun;
  ASSERT_THAT(engine
                  ->Submit(request, {.on_text = {},
                                     .on_done =
                                         [&](RequestResult) {
                                           begun.set_value();
                                           wait.wait();
                                         }})
                  .status(),
              IsOk());
  begun.get_future().wait();
  EXPECT_THAT(engine->TrySubmit(request, {}).status(), IsOk());
  EXPECT_THAT(engine->TrySubmit(request, {}).status(), IsOk());
  EXPECT_THAT(engine->TrySubmit(request, {}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("2 requests wait")));
  go.set_value();
  engine->Drain();
  EXPECT_THAT(engine->TrySubmit(request, {}).status(), IsOk());
}

TEST_F(BatcherTest, ACancelledRequestEndsAndTheOthersGoOn) {
  const auto engine = NewEngine(Options());
  Request longer;
  longer.generate.prompt = {72, 101, 108};
  longer.generate.max_tokens = 200;
  longer.generate.ignore_end_of_generation = true;
  std::promise<RequestResult> first_done;
  std::promise<void> begun;
  std::atomic<bool> told{false};
  const auto id = engine->Submit(
      longer, {.on_text =
                   [&](std::string_view) {
                     if (!told.exchange(true)) begun.set_value();
                     return true;
                   },
               .on_done = [&](RequestResult r) { first_done.set_value(r); }});
  ASSERT_THAT(id.status(), IsOk());
  longer.generate.max_tokens = 30;
  auto second = engine->Submit(longer);
  begun.get_future().wait();
  engine->Cancel(*id);
  engine->Cancel(12345);  // never was
  const RequestResult first = first_done.get_future().get();
  EXPECT_EQ(first.status.code(), absl::StatusCode::kCancelled);
  EXPECT_LT(first.generated.tokens.size(), 200u);
  EXPECT_THAT(second->get().generated.tokens, SizeIs(30));
}

// The engine's thread is in the callback, so it has not yet looked at what is
// submitted there.
TEST_F(BatcherTest, ARequestIsCancelledAlsoBeforeItIsLookedAt) {
  const auto engine = NewEngine(Options());
  Request request;
  request.generate.prompt = {72, 101};
  request.generate.max_tokens = 5;
  request.generate.ignore_end_of_generation = true;
  std::promise<RequestResult> second;
  const auto id = engine->Submit(
      request, {.on_text = {}, .on_done = [&](RequestResult) {
                  const auto next = engine->TrySubmit(
                      request, {.on_text = {}, .on_done = [&](RequestResult r) {
                                  second.set_value(std::move(r));
                                }});
                  ASSERT_THAT(next.status(), IsOk());
                  engine->Cancel(*next);
                }});
  ASSERT_THAT(id.status(), IsOk());
  EXPECT_EQ(second.get_future().get().status.code(),
            absl::StatusCode::kCancelled);
}

TEST_F(BatcherTest, AReaderThatStopsOrThrowsEndsItsRequestAlone) {
  const auto engine = NewEngine(Options());
  Request request;
  request.generate.prompt = {72, 101};
  request.generate.max_tokens = 20;
  request.generate.ignore_end_of_generation = true;
  std::vector<std::promise<RequestResult>> done(3);
  const auto submit = [&](size_t i,
                          std::function<bool(std::string_view)> on_text) {
    ASSERT_THAT(engine
                    ->Submit(request, {.on_text = std::move(on_text),
                                       .on_done =
                                           [&, i](RequestResult r) {
                                             done[i].set_value(std::move(r));
                                             throw std::runtime_error("lost");
                                           }})
                    .status(),
                IsOk());
  };
  submit(0, [](std::string_view) { return false; });
  submit(1,
         [](std::string_view) -> bool { throw std::runtime_error("no more"); });
  submit(2, {});
  EXPECT_EQ(done[0].get_future().get().status.code(),
            absl::StatusCode::kCancelled);
  EXPECT_THAT(done[1].get_future().get().status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no more")));
  const RequestResult third = done[2].get_future().get();
  EXPECT_THAT(third.status, IsOk());
  EXPECT_THAT(third.generated.tokens, SizeIs(20));
}

TEST_F(BatcherTest, AnEngineThatIsClosedEndsWhatIsUnderWay) {
  std::vector<std::future<RequestResult>> futures;
  {
    const auto engine = NewEngine(Streamed(Options()));
    for (int i = 0; i < 20; ++i) {
      Request request;
      request.generate.prompt = {72, static_cast<TokenId>(65 + i)};
      request.generate.max_tokens = 200;
      request.generate.ignore_end_of_generation = true;
      futures.push_back(*engine->Submit(request));
    }
  }
  for (auto& future : futures)
    EXPECT_EQ(future.get().status.code(), absl::StatusCode::kCancelled);
}

TEST_F(BatcherTest, AnInterruptEndsEverythingSoon) {
  std::atomic<bool> cancel{false};
  EngineOptions options = Streamed(Options());
  options.cancel = &cancel;
  const auto engine = NewEngine(options);
  std::vector<std::future<RequestResult>> futures;
  for (int i = 0; i < 20; ++i) {
    Request request;
    request.generate.prompt = {72, static_cast<TokenId>(65 + i)};
    request.generate.max_tokens = 200;
    request.generate.ignore_end_of_generation = true;
    futures.push_back(*engine->Submit(request));
  }
  cancel = true;
  for (auto& future : futures)
    EXPECT_EQ(future.get().status.code(), absl::StatusCode::kCancelled);
}

// A file that has changed ends every request, those that come later too.
TEST_F(BatcherTest, AModelFileThatChangesEndsRequestsWithThatError) {
  const auto engine = NewEngine(Streamed(Options()));
  Request request;
  request.generate.prompt = {72};
  request.generate.max_tokens = 3;
  EXPECT_THAT(engine->Submit(request)->get().status, IsOk());
  ASSERT_THAT(WriteTinyModel(path_, {.layers = 2}), IsOk());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(engine->Submit(request)->get().status.code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(BatcherTest, WhatIsWrongWithARequestIsSaidAndNothingTaken) {
  const auto engine = NewEngine(Options());
  const auto refusal = [&](const auto& change) {
    Request request;
    request.generate.prompt = {72};
    change(&request);
    const auto id = engine->Submit(request, {});
    EXPECT_EQ(id.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(id.status().message());
  };
  EXPECT_THAT(refusal([](Request* r) { r->generate.prompt.clear(); }),
              HasSubstr("the prompt is empty"));
  EXPECT_THAT(refusal([](Request* r) { r->generate.prompt.resize(257, 65); }),
              HasSubstr("257 tokens but the context has room for 256"));
  EXPECT_THAT(refusal([](Request* r) { r->generate.prompt[0] = -1; }),
              HasSubstr("token id -1"));
  EXPECT_THAT(refusal([](Request* r) { r->generate.prompt[0] = 1 << 30; }),
              HasSubstr("outside the vocabulary"));
  EXPECT_THAT(refusal([](Request* r) { r->generate.max_tokens = -2; }),
              HasSubstr("max_tokens is -2"));
  EXPECT_THAT(refusal([](Request* r) { r->logprobs = 101; }),
              HasSubstr("expected 0..100"));
  EXPECT_THAT(refusal([](Request* r) { r->generate.sampling.top_p = 2; }),
              HasSubstr("top_p"));
  EXPECT_EQ(engine->batch_stats().submitted, 0);
}

TEST_F(BatcherTest, SessionsAndSubmittedRequestsDoNotMix) {
  const auto engine = NewEngine(Options());
  const auto session = engine->NewSession();
  Request request;
  request.generate.prompt = {72};
  request.generate.max_tokens = 1;
  ASSERT_THAT(session->Generate(request.generate, {}).status(), IsOk());
  EXPECT_THAT(engine->Submit(request).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("a session holds positions")));
  session->Reset();
  EXPECT_THAT(engine->Submit(request)->get().status, IsOk());
  EXPECT_THAT(session->Generate(request.generate, {}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("submitted requests")));
}

TEST_F(BatcherTest, AnAnswerEndsWhereTheContextDoes) {
  EngineOptions options = Options();
  options.context = 70;
  const auto engine = NewEngine(options);
  Request request;
  request.generate.prompt.assign(66, 65);
  request.generate.max_tokens = -1;
  request.generate.ignore_end_of_generation = true;
  const RequestResult result = engine->Submit(request)->get();
  EXPECT_THAT(result.status, IsOk());
  EXPECT_EQ(result.generated.finish, FinishReason::kLength);
  EXPECT_THAT(result.generated.tokens, SizeIs(5));
}

}  // namespace
}  // namespace coldstream
