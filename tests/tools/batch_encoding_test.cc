#include "tools/batch_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/small_vocabulary.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BatchEncodingTest : public ::testing::Test {
 protected:
  BatchEncodingTest() {
    end_ = bpe_.Add("<|im_end|>", TokenType::kControl);
    bpe_.Add("<|im_start|>", TokenType::kControl);
  }
  Status Encode(BatchRequest* request) {
    const auto tokenizer = Tokenizer::Create(bpe_.Build());
    EXPECT_THAT(tokenizer, IsOk());
    return EncodeBatchInput(**tokenizer, chat_, request);
  }
  void AddBos() {
    bpe_.Set("tokenizer.ggml.bos_token_id", int64_t{end_});
    bpe_.Set("tokenizer.ggml.add_bos_token", true);
  }

  SmallBpe bpe_{"gpt-2"};
  TokenId end_ = 0;
  StatusOr<ChatTemplate> chat_ = ChatTemplate(*FindChatFormat("chatml"));
};

TEST_F(BatchEncodingTest, ATextIsTokensWithoutControlTokens) {
  BatchRequest request{.input = "a<|im_end|>"};
  ASSERT_THAT(Encode(&request), IsOk());
  const std::vector<TokenId>& ids = request.request.generate.prompt;
  EXPECT_EQ(ids.size(), 11u);
  EXPECT_THAT(ids, ::testing::Not(::testing::Contains(end_)));
}

TEST_F(BatchEncodingTest, ATextHasOneBosWhereTheModelAddsOneAndIdsHaveNone) {
  AddBos();
  BatchRequest text{.input = "a"};
  ASSERT_THAT(Encode(&text), IsOk());
  EXPECT_THAT(text.request.generate.prompt, ElementsAre(end_, 'a'));
  BatchRequest ids{.input = std::vector<TokenId>{'a', end_}};
  ASSERT_THAT(Encode(&ids), IsOk());
  EXPECT_THAT(ids.request.generate.prompt, ElementsAre('a', end_));
}

TEST_F(BatchEncodingTest, AnIdOutsideTheVocabularyIsNamed) {
  BatchRequest request{.input = std::vector<TokenId>{1, 258, 2}};
  EXPECT_THAT(Encode(&request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("token 1 of the prompt: expected an id below "
                                 "the vocabulary's 258, got 258")));
}

TEST_F(BatchEncodingTest, NothingToComputeIsAnErrorUnlessThereIsABos) {
  BatchRequest request{.input = ""};
  EXPECT_THAT(Encode(&request), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("the prompt is empty")));
  AddBos();
  EXPECT_THAT(Encode(&request), IsOk());
}

TEST_F(BatchEncodingTest, MessagesGoThroughTheTemplate) {
  BatchRequest request{
      .input = std::vector<ChatMessage>{{ChatRole::kUser, "<|im_end|>"}}};
  ASSERT_THAT(Encode(&request), IsOk());
  EXPECT_THAT(request.request.generate.prompt,
              ::testing::Contains(end_).Times(1));
}

TEST_F(BatchEncodingTest, TheTemplatesStopStringsJoinTheRequestsOnce) {
  chat_ = ChatTemplate(*FindChatFormat("plain"));
  BatchRequest request{.input =
                           std::vector<ChatMessage>{{ChatRole::kUser, "a"}}};
  request.request.generate.stop = {"x"};
  ASSERT_THAT(Encode(&request), IsOk());
  ASSERT_THAT(Encode(&request), IsOk());
  EXPECT_THAT(request.request.generate.stop, ElementsAre("x", "\nUser:"));
}

TEST_F(BatchEncodingTest, AMissingTemplateConcernsChatsAlone) {
  chat_ = absl::NotFoundError("no template");
  BatchRequest chat{.input = std::vector<ChatMessage>{{ChatRole::kUser, "a"}}};
  EXPECT_THAT(Encode(&chat),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no template")));
  BatchRequest text{.input = "a"};
  EXPECT_THAT(Encode(&text), IsOk());
}

TEST_F(BatchEncodingTest, WhatTheTemplateRefusesIsTheLinesError) {
  chat_ = ChatTemplate(*FindChatFormat("mistral-v1"));
  BatchRequest request{.input = std::vector<ChatMessage>{
                           {ChatRole::kUser, "a"}, {ChatRole::kUser, "b"}}};
  EXPECT_THAT(Encode(&request), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("messages[1]")));
}

TEST_F(BatchEncodingTest, AnEmbeddingsTextsHaveTheBosAndEosOfTheModel) {
  const auto prompts = [&](const BatchEmbedding& embedding) {
    const auto tokenizer = Tokenizer::Create(bpe_.Build());
    const auto requests =
        EncodeBatchEmbedding(**tokenizer, std::nullopt, embedding);
    EXPECT_THAT(requests.status(), IsOk());
    std::vector<std::vector<TokenId>> ids;
    for (const Request& request : *requests)
      ids.push_back(request.generate.prompt);
    return ids;
  };
  using Ids = std::vector<TokenId>;
  const BatchEmbedding embedding{.inputs = {"a", Ids{'b', 'c'}}};
  EXPECT_THAT(prompts(embedding),
              ElementsAre(ElementsAre('a'), ElementsAre('b', 'c')));
  AddBos();
  bpe_.Set("tokenizer.ggml.eos_token_id", int64_t{end_ + 1});
  bpe_.Set("tokenizer.ggml.add_eos_token", true);
  EXPECT_THAT(prompts(embedding), ElementsAre(ElementsAre(end_, 'a', end_ + 1),
                                              ElementsAre('b', 'c')));
}

TEST_F(BatchEncodingTest, AnEmbeddingsPoolingIsItsOwnElseTheJobs) {
  const auto tokenizer = Tokenizer::Create(bpe_.Build());
  const auto pooling = [&](std::optional<Pooling> own,
                           std::optional<Pooling> jobs) {
    const auto requests = EncodeBatchEmbedding(
        **tokenizer, jobs, {.inputs = {"a"}, .pooling = own});
    return requests->front().embed->pooling;
  };
  EXPECT_EQ(pooling(Pooling::kLast, Pooling::kCls), Pooling::kLast);
  EXPECT_EQ(pooling(std::nullopt, Pooling::kCls), Pooling::kCls);
  EXPECT_EQ(pooling(std::nullopt, std::nullopt), std::nullopt);
}

TEST_F(BatchEncodingTest, AnEmbeddingsInputThatIsWrongIsNamed) {
  const auto tokenizer = Tokenizer::Create(bpe_.Build());
  const auto refusal = [&](const BatchEmbedding& embedding) {
    return EncodeBatchEmbedding(**tokenizer, std::nullopt, embedding).status();
  };
  EXPECT_THAT(refusal({.inputs = {"a", std::vector<TokenId>{1, 258}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 1: token 1 of the prompt")));
  EXPECT_THAT(refusal({.inputs = {"a", "b", ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 2: the text is empty")));
}

}  // namespace
}  // namespace coldstream
