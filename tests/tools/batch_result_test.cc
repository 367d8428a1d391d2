#include "tools/batch_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/runtime/small_vocabulary.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TokenScore Score(TokenId id, double log_probability,
                 std::vector<TokenProbability> best = {}) {
  return {.token = {id, log_probability}, .best = std::move(best)};
}

class BatchResultTest : public ::testing::Test {
 protected:
  BatchResultTest() {
    bos_ = bpe_.Add("<s>", TokenType::kControl);
    tokenizer_ = *Tokenizer::Create(bpe_.Build());
    model_ = {.tokenizer = tokenizer_.get(), .name = "tiny.gguf"};
    result_.generated.tokens = {'o', 'k'};
    result_.generated.text = "ok";
    result_.generated.finish = FinishReason::kStopString;
    result_.prompt_tokens = 3;
  }
  Json Answer() const {
    const std::string line = BatchAnswerLine(key_, request_, result_, model_);
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
    EXPECT_TRUE(line.ends_with('\n'));
    return Json::parse(line);
  }
  Json Choice() const { return Answer()["response"]["body"]["choices"][0]; }

  SmallBpe bpe_{"gpt-2"};
  TokenId bos_ = 0;
  std::unique_ptr<Tokenizer> tokenizer_;
  BatchModel model_;
  const BatchKey key_ = {.line = 7, .custom_id = "r1"};
  BatchRequest request_;
  RequestResult result_;
};

TEST_F(BatchResultTest, ACompletionIsWrittenAsOpenAiDoes) {
  EXPECT_EQ(BatchAnswerLine(key_, request_, result_, model_),
            R"({"id":"batch_req_7","custom_id":"r1","response":)"
            R"({"status_code":200,"request_id":"req_7","body":)"
            R"({"id":"cmpl-7","object":"text_completion","created":0,)"
            R"("model":"tiny.gguf","choices":[{"index":0,"text":"ok",)"
            R"("logprobs":null,"finish_reason":"stop"}],)"
            R"("usage":{"prompt_tokens":3,"completion_tokens":2,)"
            R"("total_tokens":5}}},"error":null})"
            "\n");
}

TEST_F(BatchResultTest, AChatHasAMessage) {
  request_.endpoint = BatchEndpoint::kChatCompletions;
  request_.model = "mine";
  result_.generated.finish = FinishReason::kLength;
  const Json body = Answer()["response"]["body"];
  EXPECT_EQ(body["id"], "chatcmpl-7");
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["model"], "mine");
  EXPECT_EQ(body["choices"][0],
            Json::parse(R"({"index": 0, "message": {"role": "assistant",
                "content": "ok", "refusal": null}, "logprobs": null,
                "finish_reason": "length"})"));
}

TEST_F(BatchResultTest, TextThatIsNotUtf8OrHasLineEndsStaysOneLine) {
  result_.generated.text = "a\nb\r\xFF\u2028";
  EXPECT_EQ(Choice()["text"], "a\nb\r\uFFFD\u2028");
}

TEST_F(BatchResultTest, EchoPutsThePromptInFront) {
  request_.request.echo = true;
  request_.input = "say ";
  EXPECT_EQ(Choice()["text"], "say ok");
  request_.input = std::vector<TokenId>{bos_, 'x'};
  request_.request.generate.prompt = {bos_, 'x'};
  EXPECT_EQ(Choice()["text"], "xok");
}

TEST_F(BatchResultTest, ScoresOfACompletionAreFourLists) {
  request_.request.logprobs = 2;
  result_.generated_scores = {
      Score('o', -0.5, {{'o', -0.5}, {'u', -1.5}}),
      Score('k', -kInfinity, {{'a', -0.25}, {'b', -2}})};
  EXPECT_EQ(Choice()["logprobs"], Json::parse(R"({"tokens": ["o", "k"],
                "token_logprobs": [-0.5, -9999.0],
                "top_logprobs": [{"o": -0.5, "u": -1.5},
                                 {"a": -0.25, "b": -2.0, "k": -9999.0}],
                "text_offset": [0, 1]})"));
}

TEST_F(BatchResultTest, ScoringEchoesThePromptWithoutAScoreForItsFirstToken) {
  request_.request = {.generate = {.prompt = {bos_, 'h', 'i'},
                                   .max_tokens = 0,
                                   .sampling = {},
                                   .stop = {}},
                      .logprobs = 0,
                      .echo = true};
  request_.input = "hi";
  result_.generated = {};
  result_.prompt_scores = {Score('h', -1), Score('i', -0.125)};
  const Json choice = Choice();
  EXPECT_EQ(choice["text"], "hi");
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"], Json::parse(R"({"tokens": ["<s>", "h", "i"],
                "token_logprobs": [null, -1.0, -0.125],
                "top_logprobs": [null, {"h": -1.0}, {"i": -0.125}],
                "text_offset": [0, 0, 1]})"));
}

TEST_F(BatchResultTest, OffsetsCountCharactersAlsoOfTokensThatCutThem) {
  request_.request.logprobs = 0;
  result_.generated_scores = {Score(0xC3, -1), Score(0xA9, -1), Score('x', -1)};
  result_.generated.text = "\u00E9x";
  const Json logprobs = Choice()["logprobs"];
  EXPECT_EQ(logprobs["tokens"], Json({"bytes:\\xc3", "bytes:\\xa9", "x"}));
  EXPECT_EQ(logprobs["text_offset"], Json({0, 1, 1}));
}

TEST_F(BatchResultTest, ASpaceThatSentencePieceAddsIsNotCounted) {
  SmallSpm spm;
  const TokenId a = spm.Add("\u2581a", -1);
  const auto tokenizer = *Tokenizer::Create(spm.Build());
  model_.tokenizer = tokenizer.get();
  request_.request = {.generate = {.prompt = {SmallSpm::kBos, a, a},
                                   .max_tokens = 0,
                                   .sampling = {},
                                   .stop = {}},
                      .logprobs = 0,
                      .echo = true};
  request_.input = "a a";
  result_.generated = {};
  result_.prompt_scores = {Score(a, -1), Score(a, -1)};
  EXPECT_EQ(Choice()["logprobs"]["text_offset"], Json({0, 0, 1}));
}

TEST_F(BatchResultTest, ScoresOfAChatCarryBytes) {
  request_.endpoint = BatchEndpoint::kChatCompletions;
  request_.request.logprobs = 1;
  result_.generated_scores = {Score(0xC3, -0.1f, {{'a', -0.05f}})};
  EXPECT_EQ(Choice()["logprobs"],
            Json::parse(R"({"content": [{"token": "\ufffd", "logprob": -0.1,
                "bytes": [195], "top_logprobs": [{"token": "a",
                "logprob": -0.05, "bytes": [97]}]}], "refusal": null})"));
}

TEST_F(BatchResultTest, AFailedResultIsAnErrorLine) {
  result_.status = absl::InvalidArgumentError("too long: 9 of 8");
  Json line = Answer();
  EXPECT_EQ(line["response"]["status_code"], 400);
  EXPECT_EQ(line["error"]["message"], "too long: 9 of 8");
  result_.status = absl::DataLossError("short read");
  line = Answer();
  EXPECT_EQ(line["response"]["status_code"], 500);
  EXPECT_EQ(line["response"]["body"]["error"]["type"], "server_error");
}

TEST_F(BatchResultTest, AnErrorIsThereInBothPlacesWhereItIsLookedFor) {
  const std::string line = BatchErrorLine(
      {.line = 3, .custom_id = ""},
      {.code = "invalid_value", .message = "m\n", .param = "body.n"});
  EXPECT_EQ(line, R"({"id":"batch_req_3","custom_id":null,"response":)"
                  R"({"status_code":400,"request_id":"req_3","body":{"error":)"
                  R"({"message":"m\n","type":"invalid_request_error",)"
                  R"("param":"body.n","code":"invalid_value"}}},)"
                  R"("error":{"code":"invalid_value","message":"m\n"}})"
                  "\n");
}

TEST_F(BatchResultTest, EmbeddingsAreAListWithAnEntryForEachInput) {
  const GatheredEmbeddings all = {
      .status = {}, .vectors = {{0.1f, -2}, {0, 1}}, .prompt_tokens = 5};
  const std::string line = BatchEmbeddingLine(key_, request_, all, model_);
  EXPECT_EQ(line, R"({"id":"batch_req_7","custom_id":"r1","response":)"
                  R"({"status_code":200,"request_id":"req_7","body":)"
                  R"({"object":"list","data":[)"
                  R"({"object":"embedding","index":0,"embedding":[0.1,-2.0]},)"
                  R"({"object":"embedding","index":1,"embedding":[0.0,1.0]}],)"
                  R"("model":"tiny.gguf","usage":{"prompt_tokens":5,)"
                  R"("total_tokens":5}}},"error":null})"
                  "\n");
}

// The line is put together around a member that an id may look like.
TEST_F(BatchResultTest, AnIdThatLooksLikeTheDataChangesNothing) {
  const BatchKey key = {.line = 7, .custom_id = R"("data":[1,"data":[)"};
  request_.embedding.format = EmbeddingFormat::kBase64;
  const Json line = Json::parse(BatchEmbeddingLine(
      key, request_,
      {.status = {}, .vectors = {{1, -0.5f}}, .prompt_tokens = 1}, model_));
  EXPECT_EQ(line["custom_id"], key.custom_id);
  EXPECT_EQ(line["response"]["body"]["data"],
            Json::parse(R"([{"object": "embedding", "index": 0,
                             "embedding": "AACAPwAAAL8="}])"));
}

TEST_F(BatchResultTest, EmbeddingsThatFailAreAnErrorLine) {
  const Json line = Json::parse(BatchEmbeddingLine(
      key_, request_,
      {.status = absl::InvalidArgumentError("input 3: too long"),
       .vectors = {{}},
       .prompt_tokens = 1},
      model_));
  EXPECT_EQ(line["response"]["status_code"], 400);
  EXPECT_EQ(line["error"]["message"], "input 3: too long");
}

TEST(BatchResultIdTest, AnIdIsReadBackAndNothingElse) {
  for (const int64_t line : {int64_t{1}, int64_t{123456789012}})
    EXPECT_EQ(LineOfBatchResultId(BatchResultId(line)), line);
  for (const char* other :
       {"", "batch_req_", "batch_req_0", "batch_req_-1", "batch_req_1x",
        "batch_req_ 1", "batch_req_99999999999999999999", "req_1", "7"})
    EXPECT_EQ(LineOfBatchResultId(other), -1) << other;
}

}  // namespace
}  // namespace coldstream
