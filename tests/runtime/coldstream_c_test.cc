// The C interface, used well and badly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/coldstream.h"
#include "tests/runtime/c_engine_test.h"

extern "C" long generate_in_c(const char* path, coldstream_error* error);
extern "C" const char* generate_with_version_1(const char* path, char* text,
                                               size_t capacity);

namespace coldstream {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class ColdstreamCTest : public CEngineTest {
 protected:
  static coldstream_request Request(int64_t tokens = 5) {
    coldstream_request request;
    coldstream_request_init(&request);
    request.prompt = "Hello";
    request.max_tokens = tokens;
    request.temperature = 0;
    request.ignore_eos = 1;
    return request;
  }
};

TEST_F(ColdstreamCTest, AProgramInCGenerates) {
  EXPECT_EQ(generate_in_c(path_.c_str(), &error_), 7) << error_.message;
}

TEST_F(ColdstreamCTest, AResultHasTextTokensAndScores) {
  const coldstream_engine engine = Open();
  coldstream_request request = Request();
  request.logprobs = 2;
  request.echo = 1;
  coldstream_result* result = nullptr;
  ASSERT_EQ(coldstream_generate(engine, &request, &result, &error_),
            COLDSTREAM_OK)
      << error_.message;
  EXPECT_EQ(coldstream_result_code(result), COLDSTREAM_OK);
  EXPECT_STREQ(coldstream_result_message(result), "");
  EXPECT_EQ(coldstream_result_token_count(result), 5u);
  EXPECT_EQ(coldstream_result_prompt_tokens(result), 5u);
  EXPECT_STREQ(coldstream_result_finish(result), "length");
  EXPECT_EQ(std::strlen(coldstream_result_text(result)),
            coldstream_result_text_bytes(result));
  EXPECT_EQ(coldstream_result_score_count(result), 4u + 5u);
  int32_t token = 0, best = 0;
  double logprob = 1, best_logprob = 1;
  ASSERT_EQ(coldstream_result_score(result, 4, 0, &token, &logprob),
            COLDSTREAM_OK);
  ASSERT_EQ(coldstream_result_score(result, 4, 1, &best, &best_logprob),
            COLDSTREAM_OK);
  // Greedy: the first token of the answer is the best one.
  EXPECT_EQ(token, coldstream_result_token(result, 0));
  EXPECT_EQ(token, best);
  EXPECT_EQ(logprob, best_logprob);
  EXPECT_LT(logprob, 0);
  EXPECT_EQ(coldstream_result_score(result, 4, 3, &token, &logprob),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_result_score(result, 9, 0, &token, &logprob),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_result_token(result, 5), -1);
  coldstream_result_free(result);
}

TEST_F(ColdstreamCTest, TextIsTokenized) {
  const coldstream_engine engine = Open();
  size_t count = 0;
  int32_t tokens[3] = {};
  ASSERT_EQ(
      coldstream_tokenize(engine, "Hello", 5, 0, tokens, 3, &count, &error_),
      COLDSTREAM_OK);
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(tokens[0], 'H');
  EXPECT_EQ(tokens[2], 'l');
}

TEST_F(ColdstreamCTest, AHandleThatIsClosedIsKnownToBe) {
  const coldstream_engine engine = Open();
  ASSERT_EQ(coldstream_close(engine, &error_), COLDSTREAM_OK);
  const coldstream_request request = Request();
  coldstream_result* result = nullptr;
  coldstream_stats stats;
  coldstream_stats_init(&stats);
  size_t count = 0;
  EXPECT_EQ(coldstream_close(engine, &error_), COLDSTREAM_INVALID_HANDLE);
  EXPECT_THAT(error_.message, HasSubstr("closed"));
  EXPECT_EQ(coldstream_generate(engine, &request, &result, nullptr),
            COLDSTREAM_INVALID_HANDLE);
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(coldstream_submit(engine, &request, nullptr, nullptr, nullptr),
            COLDSTREAM_INVALID_HANDLE);
  EXPECT_EQ(coldstream_cancel(engine, 1, nullptr), COLDSTREAM_INVALID_HANDLE);
  EXPECT_EQ(coldstream_drain(engine, nullptr), COLDSTREAM_INVALID_HANDLE);
  EXPECT_EQ(coldstream_get_stats(engine, &stats, nullptr),
            COLDSTREAM_INVALID_HANDLE);
  EXPECT_EQ(coldstream_tokenize(engine, "a", 1, 0, nullptr, 0, &count, nullptr),
            COLDSTREAM_INVALID_HANDLE);
  EXPECT_STREQ(coldstream_warning(engine, 0), "");
  EXPECT_EQ(coldstream_close({12345}, nullptr), COLDSTREAM_INVALID_HANDLE);
}

TEST_F(ColdstreamCTest, WrongArgumentsAreCodesWithAMessage) {
  coldstream_engine engine;
  EXPECT_EQ(coldstream_open(nullptr, nullptr, &engine, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_open("/nowhere.gguf", nullptr, &engine, &error_),
            COLDSTREAM_NOT_FOUND);
  EXPECT_THAT(error_.message, HasSubstr("/nowhere.gguf"));
  coldstream_options options = Options();
  options.device = "tpu";
  EXPECT_EQ(coldstream_open(path_.c_str(), &options, &engine, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("tpu"));
  options = Options();
  options.kv_type = "q4_0";
  EXPECT_EQ(coldstream_open(path_.c_str(), &options, &engine, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("f16 or q8_0"));
  options.kv_type = "q8_0";
  ASSERT_EQ(coldstream_open(path_.c_str(), &options, &engine, &error_),
            COLDSTREAM_OK)
      << error_.message;
  EXPECT_EQ(coldstream_close(engine, &error_), COLDSTREAM_OK);
  options = Options();
  options.ram_bytes = 1 << 20;
  EXPECT_EQ(coldstream_open(path_.c_str(), &options, &engine, &error_),
            COLDSTREAM_RESOURCE_EXHAUSTED);
  options.size = 0;
  EXPECT_EQ(coldstream_open(path_.c_str(), &options, &engine, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("coldstream_options_init"));
  engine = Open();
  coldstream_request request = Request();
  coldstream_result* result = nullptr;
  request.prompt = nullptr;
  EXPECT_EQ(coldstream_generate(engine, &request, &result, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  request = Request();
  request.top_p = 3;
  EXPECT_EQ(coldstream_generate(engine, &request, &result, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("top_p"));
  EXPECT_EQ(coldstream_generate(engine, nullptr, &result, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_submit(engine, nullptr, nullptr, nullptr, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_get_stats(engine, nullptr, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
}

// A header of the future has more fields behind ours, one of the past fewer.
TEST_F(ColdstreamCTest, StructsOfOtherVersionsAreTaken) {
  struct {
    coldstream_options known;
    uint64_t unknown = ~uint64_t{0};
  } longer;
  longer.known = Options();
  longer.known.size = sizeof(longer);
  coldstream_engine engine;
  ASSERT_EQ(coldstream_open(path_.c_str(), &longer.known, &engine, &error_),
            COLDSTREAM_OK)
      << error_.message;
  coldstream_request request = Request();
  request.echo = 1;
  request.logprobs = 0;
  request.size = offsetof(coldstream_request, logprobs);  // it has none
  coldstream_result* result = nullptr;
  EXPECT_EQ(coldstream_generate(engine, &request, &result, &error_),
            COLDSTREAM_OK);
  EXPECT_EQ(coldstream_result_score_count(result), 0u);
  coldstream_result_free(result);
  coldstream_close(engine, nullptr);
}

TEST_F(ColdstreamCTest, AProgramOfVersion1GeneratesTheSame) {
  char text[200] = "";
  EXPECT_STREQ(generate_with_version_1(path_.c_str(), text, sizeof(text)),
               nullptr);
  const coldstream_request request = Request(7);
  coldstream_result* result = nullptr;
  ASSERT_EQ(coldstream_generate(Open(), &request, &result, &error_),
            COLDSTREAM_OK);
  EXPECT_STREQ(coldstream_result_text(result), text);
  EXPECT_STRNE(text, "");
  coldstream_result_free(result);
}

struct Seen {
  std::string text;
  std::atomic<int> done{0};
  coldstream_engine engine = {0};
  int stop_after = -1;
  coldstream_code code = COLDSTREAM_OK;
  std::vector<coldstream_code> in_callback;
};

int OnText(const char* text, size_t bytes, void* user) {
  auto* const seen = static_cast<Seen*>(user);
  seen->text.append(text, bytes);
  return seen->stop_after-- == 0 ? 1 : 0;
}

void OnDone(coldstream_result* result, void* user) {
  auto* const seen = static_cast<Seen*>(user);
  seen->code = coldstream_result_code(result);
  coldstream_result_free(result);
  ++seen->done;
}

coldstream_callbacks CallbacksOf(Seen* seen) {
  coldstream_callbacks callbacks;
  coldstream_callbacks_init(&callbacks);
  callbacks.on_text = OnText;
  callbacks.on_done = OnDone;
  callbacks.user = seen;
  return callbacks;
}

TEST_F(ColdstreamCTest, CallbacksSeeTheTextAndTheEnd) {
  const coldstream_engine engine = Open();
  Seen seen;
  const coldstream_callbacks callbacks = CallbacksOf(&seen);
  const coldstream_request request = Request();
  ASSERT_EQ(coldstream_submit(engine, &request, &callbacks, nullptr, &error_),
            COLDSTREAM_OK);
  ASSERT_EQ(coldstream_drain(engine, &error_), COLDSTREAM_OK);
  EXPECT_EQ(seen.done, 1);
  coldstream_result* result = nullptr;
  ASSERT_EQ(coldstream_generate(engine, &request, &result, &error_),
            COLDSTREAM_OK);
  EXPECT_EQ(coldstream_result_text(result), seen.text);
  coldstream_result_free(result);
  coldstream_stats stats;
  coldstream_stats_init(&stats);
  ASSERT_EQ(coldstream_get_stats(engine, &stats, &error_), COLDSTREAM_OK);
  EXPECT_EQ(stats.submitted, 2);
  EXPECT_GT(stats.bytes_from_disk, 0u);
}

TEST_F(ColdstreamCTest, ACallbackThatFailsEndsItsRequest) {
  const coldstream_engine engine = Open();
  Seen seen;
  seen.stop_after = 1;
  const coldstream_callbacks callbacks = CallbacksOf(&seen);
  const coldstream_request request = Request(150);
  ASSERT_EQ(coldstream_submit(engine, &request, &callbacks, nullptr, &error_),
            COLDSTREAM_OK);
  coldstream_drain(engine, nullptr);
  EXPECT_EQ(seen.done, 1);
  EXPECT_EQ(seen.code, COLDSTREAM_CANCELLED);
}

void CallBack(coldstream_result* result, void* user) {
  auto* const seen = static_cast<Seen*>(user);
  coldstream_result_free(result);
  coldstream_request request;
  coldstream_request_init(&request);
  request.prompt = "again";
  request.max_tokens = 1;
  coldstream_result* other = nullptr;
  seen->in_callback = {
      coldstream_close(seen->engine, nullptr),
      coldstream_drain(seen->engine, nullptr),
      coldstream_generate(seen->engine, &request, &other, nullptr),
      coldstream_submit(seen->engine, &request, nullptr, nullptr, nullptr),
      coldstream_cancel(seen->engine, 77, nullptr)};
  ++seen->done;
}

TEST_F(ColdstreamCTest, WhatWouldWaitForItsOwnCallbackIsRefused) {
  Seen seen;
  seen.engine = Open();
  coldstream_callbacks callbacks = CallbacksOf(&seen);
  callbacks.on_text = nullptr;
  callbacks.on_done = CallBack;
  const coldstream_request request = Request();
  ASSERT_EQ(
      coldstream_submit(seen.engine, &request, &callbacks, nullptr, &error_),
      COLDSTREAM_OK);
  coldstream_drain(seen.engine, nullptr);
  EXPECT_THAT(seen.in_callback,
              ::testing::ElementsAre(COLDSTREAM_FAILED_PRECONDITION,
                                     COLDSTREAM_FAILED_PRECONDITION,
                                     COLDSTREAM_FAILED_PRECONDITION,
                                     COLDSTREAM_OK, COLDSTREAM_OK));
}

TEST_F(ColdstreamCTest, ClosingEndsWhatOtherThreadsWaitFor) {
  for (int round = 0; round < 10; ++round) {
    const coldstream_engine engine = Open();
    std::atomic<int> begun{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&] {
        const coldstream_request request = Request(150);
        ++begun;
        for (int each = 0; each < 20; ++each) {
          coldstream_result* result = nullptr;
          const coldstream_code code =
              coldstream_generate(engine, &request, &result, nullptr);
          coldstream_result_free(result);
          EXPECT_THAT(code, AnyOf(COLDSTREAM_OK, COLDSTREAM_CANCELLED,
                                  COLDSTREAM_INVALID_HANDLE));
        }
      });
    }
    while (begun < 6) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    std::thread other([&] { coldstream_close(engine, nullptr); });
    coldstream_close(engine, nullptr);
    other.join();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(coldstream_close(engine, nullptr), COLDSTREAM_INVALID_HANDLE);
  }
  engine_.id = 0;
}

TEST_F(ColdstreamCTest, NoResultIsNoCrash) {
  EXPECT_EQ(coldstream_result_code(nullptr), COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_STREQ(coldstream_result_text(nullptr), "");
  EXPECT_EQ(coldstream_result_token(nullptr, 0), -1);
  coldstream_result_free(nullptr);
  EXPECT_STRNE(coldstream_version(), "");
}

}  // namespace
}  // namespace coldstream
