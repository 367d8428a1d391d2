// Embeddings through the C interface, used well and badly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/coldstream.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "tests/runtime/c_engine_test.h"
#include "tests/support/same_bits.h"

namespace coldstream {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kHidden = 64;  // of the tiny model

coldstream_embedding_request TextRequest(
    const char* text = "Hello", int32_t pooling = COLDSTREAM_POOLING_MEAN) {
  coldstream_embedding_request request;
  coldstream_embedding_request_init(&request);
  request.text = text;
  request.pooling = pooling;
  return request;
}

// Frees it.
std::vector<float> VectorOf(coldstream_result* result) {
  const float* values = nullptr;
  size_t count = 0;
  coldstream_error error;
  EXPECT_EQ(coldstream_result_embedding(result, &values, &count, &error),
            COLDSTREAM_OK)
      << error.message;
  std::vector<float> vector(values, values + count);
  coldstream_result_free(result);
  return vector;
}

class CEmbeddingTest : public CEngineTest {
 protected:
  std::vector<float> Vector(const coldstream_embedding_request& request) {
    coldstream_result* result = nullptr;
    EXPECT_EQ(coldstream_embed(engine_, &request, &result, &error_),
              COLDSTREAM_OK)
        << error_.message;
    return VectorOf(result);
  }
  coldstream_code Refusal(const coldstream_embedding_request& request) {
    coldstream_result* result = nullptr;
    const coldstream_code code =
        coldstream_embed(engine_, &request, &result, &error_);
    EXPECT_EQ(result, nullptr);
    return code;
  }
};

TEST_F(CEmbeddingTest, AVectorHasTheBitsOfTheEngines) {
  Open();
  EngineOptions options;
  options.ram_bytes = 1 << 30;
  options.context = 200;
  const auto engine = Engine::Create(*Model::Open({.path = path_}), options);
  ASSERT_THAT(engine.status(), IsOk());
  const std::vector<std::pair<coldstream_pooling, Pooling>> kinds = {
      {COLDSTREAM_POOLING_MEAN, Pooling::kMean},
      {COLDSTREAM_POOLING_LAST, Pooling::kLast},
      {COLDSTREAM_POOLING_CLS, Pooling::kCls}};
  for (const auto& [c_pooling, pooling] : kinds) {
    for (const VectorLength length :
         {VectorLength::kOne, VectorLength::kAsItIs}) {
      Request expected;
      expected.generate.prompt = {'H', 'e', 'l', 'l', 'o'};
      expected.embed = EmbedOptions{.pooling = pooling, .length = length};
      coldstream_embedding_request request = TextRequest("Hello", c_pooling);
      request.normalize = length == VectorLength::kOne ? 1 : 0;
      EXPECT_TRUE(SameBits(Vector(request),
                           (*engine)->Submit(expected)->get().embedding))
          << PoolingName(pooling);
    }
  }
}

TEST_F(CEmbeddingTest, ItIsOfAWholeTextOfAPartOrOfTokens) {
  Open();
  const std::vector<float> whole = Vector(TextRequest("Hello"));
  coldstream_embedding_request part = TextRequest("Hello, world");
  part.text_bytes = 5;
  EXPECT_TRUE(SameBits(Vector(part), whole));
  const int32_t ids[] = {'H', 'e', 'l', 'l', 'o'};
  coldstream_embedding_request tokens = TextRequest(nullptr);
  tokens.tokens = ids;
  tokens.token_count = 5;
  EXPECT_TRUE(SameBits(Vector(tokens), whole));
  coldstream_result* result = nullptr;
  ASSERT_EQ(coldstream_embed(engine_, &tokens, &result, &error_),
            COLDSTREAM_OK);
  EXPECT_EQ(coldstream_result_prompt_tokens(result), 5u);
  coldstream_result_free(result);
}

TEST_F(CEmbeddingTest, WithoutAPoolingItIsTheModels) {
  ASSERT_THAT(
      WriteTinyModel(path_, {.metadata = {{"llama.pooling_type", int64_t{3}}}}),
      IsOk());
  Open();
  coldstream_embedding_request request;
  coldstream_embedding_request_init(&request);
  request.text = "Hello";
  EXPECT_TRUE(SameBits(Vector(request),
                       Vector(TextRequest("Hello", COLDSTREAM_POOLING_LAST))));
}

TEST_F(CEmbeddingTest, ATextHasNoVectorAndAVectorNoText) {
  Open();
  coldstream_request text;
  coldstream_request_init(&text);
  text.prompt = "Hello";
  text.max_tokens = 1;
  coldstream_result* result = nullptr;
  ASSERT_EQ(coldstream_generate(engine_, &text, &result, &error_),
            COLDSTREAM_OK);
  const float other = 1;
  const float* values = &other;
  size_t count = 7;
  EXPECT_EQ(coldstream_result_embedding(result, &values, &count, &error_),
            COLDSTREAM_FAILED_PRECONDITION);
  EXPECT_THAT(error_.message, HasSubstr("coldstream_embed"));
  EXPECT_EQ(values, nullptr);
  EXPECT_EQ(count, 0u);
  coldstream_result_free(result);

  const coldstream_embedding_request vector = TextRequest();
  ASSERT_EQ(coldstream_embed(engine_, &vector, &result, &error_),
            COLDSTREAM_OK);
  int32_t token = 0;
  double logprob = 0;
  EXPECT_STREQ(coldstream_result_text(result), "");
  EXPECT_STREQ(coldstream_result_finish(result), "");
  EXPECT_EQ(coldstream_result_text_bytes(result), 0u);
  EXPECT_EQ(coldstream_result_token_count(result), 0u);
  EXPECT_EQ(coldstream_result_token(result, 0), -1);
  EXPECT_EQ(coldstream_result_score_count(result), 0u);
  EXPECT_EQ(coldstream_result_score(result, 0, 0, &token, &logprob),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_result_embedding(result, nullptr, &count, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_result_embedding(result, &values, nullptr, nullptr),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_result_embedding(nullptr, &values, &count, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("NULL"));
  coldstream_result_free(result);
}

TEST_F(CEmbeddingTest, WrongArgumentsAreCodesWithAMessage) {
  Open();
  EXPECT_EQ(Refusal(TextRequest("Hello", 4)), COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("got 4"));
  EXPECT_EQ(Refusal(TextRequest(nullptr)), COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("neither text nor tokens"));
  EXPECT_EQ(Refusal(TextRequest("")), COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("empty"));
  EXPECT_EQ(Refusal(TextRequest(std::string(201, 'a').c_str())),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("200"));
  const int32_t wrong[] = {'H', 1 << 30};
  coldstream_embedding_request tokens = TextRequest(nullptr);
  tokens.tokens = wrong;
  tokens.token_count = 2;
  EXPECT_EQ(Refusal(tokens), COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("1073741824"));
  coldstream_embedding_request never = TextRequest();
  never.size = 0;
  EXPECT_EQ(Refusal(never), COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("coldstream_embedding_request_init"));
  const coldstream_embedding_request request = TextRequest();
  coldstream_result* result = nullptr;
  EXPECT_EQ(coldstream_embed(engine_, nullptr, &result, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(coldstream_embed(engine_, &request, nullptr, &error_),
            COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_EQ(
      coldstream_submit_embedding(engine_, nullptr, nullptr, nullptr, &error_),
      COLDSTREAM_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("NULL"));
}

TEST_F(CEmbeddingTest, AClosedEngineEmbedsNothing) {
  const coldstream_engine engine = Open();
  const coldstream_embedding_request request = TextRequest();
  coldstream_result* result = nullptr;
  ASSERT_EQ(coldstream_embed(engine, &request, &result, &error_),
            COLDSTREAM_OK);
  ASSERT_EQ(coldstream_close(engine, nullptr), COLDSTREAM_OK);
  EXPECT_EQ(coldstream_close(engine, nullptr), COLDSTREAM_INVALID_HANDLE);
  // What it gave is the caller's.
  EXPECT_EQ(VectorOf(result).size(), kHidden);
  EXPECT_EQ(coldstream_embed(engine, &request, &result, &error_),
            COLDSTREAM_INVALID_HANDLE);
  EXPECT_EQ(result, nullptr);
  EXPECT_THAT(error_.message, HasSubstr("closed"));
  EXPECT_EQ(
      coldstream_submit_embedding(engine, &request, nullptr, nullptr, nullptr),
      COLDSTREAM_INVALID_HANDLE);
}

// A header of the past has fewer fields than ours, one of the future more.
TEST_F(CEmbeddingTest, StructsOfOtherVersionsAreTaken) {
  Open();
  coldstream_embedding_request shorter = TextRequest();
  shorter.normalize = 0;
  shorter.size = offsetof(coldstream_embedding_request, normalize);
  EXPECT_TRUE(SameBits(Vector(shorter), Vector(TextRequest())));
  struct {
    coldstream_embedding_request known;
    uint64_t unknown = ~uint64_t{0};
  } longer;
  longer.known = TextRequest();
  longer.known.size = sizeof(longer);
  EXPECT_TRUE(SameBits(Vector(longer.known), Vector(TextRequest())));
}

TEST(CStructTest, NoMoreIsFilledInThanTheCallerHas) {
  std::vector<unsigned char> bytes(2 * sizeof(coldstream_request));
  auto* const request = reinterpret_cast<coldstream_request*>(bytes.data());
  for (const size_t size :
       {sizeof(uint32_t), offsetof(coldstream_request, top_k),
        sizeof(coldstream_request), bytes.size()}) {
    std::fill(bytes.begin(), bytes.end(), 0xA5);
    coldstream_request_init_sized(request, size);
    EXPECT_EQ(request->size, size);
    for (size_t i = size; i < bytes.size(); ++i)
      ASSERT_EQ(bytes[i], 0xA5) << i << " of " << size;
    for (size_t i = sizeof(coldstream_request); i < size; ++i)
      ASSERT_EQ(bytes[i], 0) << i << " of " << size;
  }
  coldstream_request_init(static_cast<coldstream_request*>(nullptr));
}

struct Seen {
  std::vector<float> vector;
  std::atomic<int> done{0};
  std::atomic<int> texts{0};
  coldstream_engine engine = {0};
  std::vector<coldstream_code> codes;
};

int CountTexts(const char*, size_t, void* user) {
  ++static_cast<Seen*>(user)->texts;
  return 1;
}

void KeepVector(coldstream_result* result, void* user) {
  auto* const seen = static_cast<Seen*>(user);
  seen->vector = VectorOf(result);
  ++seen->done;
}

coldstream_callbacks Callbacks(Seen* seen,
                               void (*on_done)(coldstream_result*, void*)) {
  coldstream_callbacks callbacks;
  coldstream_callbacks_init(&callbacks);
  callbacks.on_text = CountTexts;
  callbacks.on_done = on_done;
  callbacks.user = seen;
  return callbacks;
}

TEST_F(CEmbeddingTest, ACallbackGetsTheVectorAndNoText) {
  Seen seen;
  const coldstream_engine engine = Open();
  const coldstream_callbacks callbacks = Callbacks(&seen, KeepVector);
  const coldstream_embedding_request request = TextRequest();
  uint64_t id = 0;
  ASSERT_EQ(
      coldstream_submit_embedding(engine, &request, &callbacks, &id, &error_),
      COLDSTREAM_OK);
  ASSERT_EQ(coldstream_drain(engine, nullptr), COLDSTREAM_OK);
  EXPECT_GT(id, 0u);
  EXPECT_EQ(seen.done, 1);
  EXPECT_EQ(seen.texts, 0);
  EXPECT_TRUE(SameBits(seen.vector, Vector(request)));
}

void KeepCode(coldstream_result* result, void* user) {
  auto* const seen = static_cast<Seen*>(user);
  const float* values = nullptr;
  size_t count = 0;
  coldstream_error error;
  seen->codes.push_back(
      coldstream_result_embedding(result, &values, &count, &error));
  EXPECT_EQ(values, nullptr);
  EXPECT_STREQ(error.message, coldstream_result_message(result));
  coldstream_result_free(result);
}

// Its own engine's thread is in here, so the next one cannot have begun.
void SubmitAndCancel(coldstream_result* result, void* user) {
  auto* const seen = static_cast<Seen*>(user);
  coldstream_result_free(result);
  const coldstream_embedding_request request = TextRequest();
  const coldstream_callbacks callbacks = Callbacks(seen, KeepCode);
  coldstream_result* other = nullptr;
  uint64_t id = 0;
  seen->codes = {coldstream_embed(seen->engine, &request, &other, nullptr),
                 coldstream_submit_embedding(seen->engine, &request, &callbacks,
                                             &id, nullptr),
                 coldstream_cancel(seen->engine, id, nullptr)};
}

TEST_F(CEmbeddingTest, WhatIsCancelledHasItsErrorInPlaceOfAVector) {
  Seen seen;
  seen.engine = Open();
  const coldstream_callbacks callbacks = Callbacks(&seen, SubmitAndCancel);
  const coldstream_embedding_request request = TextRequest();
  ASSERT_EQ(coldstream_submit_embedding(seen.engine, &request, &callbacks,
                                        nullptr, &error_),
            COLDSTREAM_OK);
  // The second one was submitted before the first had ended.
  coldstream_drain(seen.engine, nullptr);
  coldstream_drain(seen.engine, nullptr);
  EXPECT_THAT(seen.codes,
              ElementsAre(COLDSTREAM_FAILED_PRECONDITION, COLDSTREAM_OK,
                          COLDSTREAM_OK, COLDSTREAM_CANCELLED));
}

void Throw(coldstream_result* result, void* user) {
  coldstream_result_free(result);
  ++static_cast<Seen*>(user)->done;
  throw std::runtime_error("from a callback in C++");
}

TEST_F(CEmbeddingTest, ACallbackThatThrowsHarmsNobody) {
  Seen seen;
  const coldstream_engine engine = Open();
  const coldstream_callbacks callbacks = Callbacks(&seen, Throw);
  const coldstream_embedding_request request = TextRequest();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(coldstream_submit_embedding(engine, &request, &callbacks, nullptr,
                                          &error_),
              COLDSTREAM_OK);
  }
  coldstream_drain(engine, nullptr);
  EXPECT_EQ(seen.done, 3);
  EXPECT_EQ(Vector(request).size(), kHidden);
}

TEST_F(CEmbeddingTest, ThreadsGetTheirOwnVectorsUntilTheEngineIsClosed) {
  const coldstream_engine engine = Open();
  const std::vector<std::string> texts = {"a", "Hello", std::string(90, 'b'),
                                          std::string(190, 'c')};
  std::vector<std::vector<float>> expected;
  for (const std::string& text : texts)
    expected.push_back(Vector(TextRequest(text.c_str())));
  std::atomic<int> vectors{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < texts.size(); ++i) {
    threads.emplace_back([&, i] {
      const coldstream_embedding_request request =
          TextRequest(texts[i].c_str());
      for (;;) {
        coldstream_result* result = nullptr;
        const coldstream_code code =
            coldstream_embed(engine, &request, &result, nullptr);
        if (code != COLDSTREAM_OK) {
          coldstream_result_free(result);
          EXPECT_THAT(code,
                      AnyOf(COLDSTREAM_CANCELLED, COLDSTREAM_INVALID_HANDLE));
          return;
        }
        EXPECT_TRUE(SameBits(VectorOf(result), expected[i])) << i;
        ++vectors;
      }
    });
  }
  while (vectors < 40) std::this_thread::yield();
  EXPECT_EQ(coldstream_close(engine, &error_), COLDSTREAM_OK);
  for (std::thread& thread : threads) thread.join();
  engine_.id = 0;
}

}  // namespace
}  // namespace coldstream
