#include "tools/batch_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

constexpr uint64_t kSeed = 5;

Json LineOf(const char* url, const Json& body) {
  return {
      {"custom_id", "r1"}, {"method", "POST"}, {"url", url}, {"body", body}};
}

BatchLine Completion(Json options) {
  if (!options.contains("prompt")) options["prompt"] = "Hello";
  return ParseBatchLine(LineOf("/v1/completions", options).dump(), kSeed);
}

BatchLine Chat(Json options) {
  if (!options.contains("messages"))
    options["messages"] = {{{"role", "user"}, {"content", "Hello"}}};
  return ParseBatchLine(LineOf("/v1/chat/completions", options).dump(), kSeed);
}

BatchLine Embedding(Json options) {
  if (!options.contains("input")) options["input"] = "Hello";
  return ParseBatchLine(LineOf("/v1/embeddings", options).dump(), kSeed);
}

const BatchRequest& Good(const BatchLine& line) {
  EXPECT_FALSE(line.error) << line.error->message;
  return line.request;
}

// The error of a line that can be read, told by option and what is said of it.
void ExpectError(const BatchLine& line, const std::string& param,
                 const std::string& message) {
  ASSERT_TRUE(line.error) << param;
  EXPECT_EQ(line.error->param, param);
  EXPECT_THAT(line.error->message, HasSubstr(message));
  EXPECT_EQ(line.error->status_code, 400);
  EXPECT_EQ(line.error->message.find('\n'), std::string::npos);
  EXPECT_LT(line.error->message.size(), 400u);
}

TEST(BatchRequestTest, ACompletionHasOpenAisDefaults) {
  const BatchLine line = Completion(Json::object());
  const BatchRequest& request = Good(line);
  EXPECT_EQ(line.custom_id, "r1");
  EXPECT_EQ(request.endpoint, BatchEndpoint::kCompletions);
  EXPECT_EQ(std::get<std::string>(request.input), "Hello");
  const GenerateRequest& generate = request.request.generate;
  EXPECT_EQ(generate.max_tokens, 16);
  EXPECT_EQ(generate.sampling.temperature, 1);
  EXPECT_EQ(generate.sampling.top_p, 1);
  EXPECT_EQ(generate.sampling.top_k, 0);
  EXPECT_EQ(generate.sampling.min_p, 0);
  EXPECT_EQ(generate.sampling.repeat_penalty, 1);
  EXPECT_THAT(generate.stop, IsEmpty());
  EXPECT_FALSE(request.request.echo);
  EXPECT_EQ(request.request.logprobs, std::nullopt);
}

TEST(BatchRequestTest, EveryOptionOfACompletionIsTaken) {
  const BatchLine line = Completion({{"model", "m"},
                                     {"max_tokens", 0},
                                     {"temperature", 0},
                                     {"top_p", 0.5},
                                     {"top_k", 7},
                                     {"min_p", 0.25},
                                     {"repetition_penalty", 1.5},
                                     {"seed", -2},
                                     {"stop", {"a", "b", "c", "d"}},
                                     {"ignore_eos", true},
                                     {"logprobs", 3},
                                     {"echo", true}});
  const BatchRequest& request = Good(line);
  const GenerateRequest& generate = request.request.generate;
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(generate.max_tokens, 0);
  EXPECT_EQ(generate.sampling.temperature, 0);
  EXPECT_EQ(generate.sampling.top_p, 0.5);
  EXPECT_EQ(generate.sampling.top_k, 7);
  EXPECT_EQ(generate.sampling.min_p, 0.25);
  EXPECT_EQ(generate.sampling.repeat_penalty, 1.5);
  EXPECT_EQ(generate.sampling.seed, static_cast<uint64_t>(-2));
  EXPECT_THAT(generate.stop, ElementsAre("a", "b", "c", "d"));
  EXPECT_TRUE(generate.ignore_end_of_generation);
  EXPECT_EQ(request.request.logprobs, 3);
  EXPECT_TRUE(request.request.echo);
}

TEST(BatchRequestTest, APromptIsATextOrTokenIds) {
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(std::get<Ids>(Good(Completion({{"prompt", {1, 0, 7}}})).input),
            (Ids{1, 0, 7}));
  EXPECT_EQ(std::get<std::string>(Good(Completion({{"prompt", {"a"}}})).input),
            "a");
  EXPECT_EQ(std::get<std::string>(Good(Completion({{"prompt", ""}})).input),
            "");
  for (const Json& bad : {Json(3), Json::array(), Json({"a", "b"}),
                          Json({{1}, {2}}), Json::object()})
    ExpectError(Completion({{"prompt", bad}}), "body.prompt",
                "one prompt a line");
  for (const Json& bad : {Json(-1), Json(1.5), Json("a"), Json(2147483648)})
    ExpectError(Completion({{"prompt", {1, bad}}}), "body.prompt[1]",
                "a token id");
}

TEST(BatchRequestTest, AMissingPromptIsAnError) {
  const BatchLine line =
      ParseBatchLine(LineOf("/v1/completions", Json::object()).dump(), kSeed);
  ExpectError(line, "body.prompt", "got nothing");
  EXPECT_EQ(line.error->code, "missing_required_parameter");
  EXPECT_EQ(line.custom_id, "r1");
}

TEST(BatchRequestTest, OptionsOutOfRangeAreNamedWithWhatWasThere) {
  ExpectError(Completion({{"temperature", -0.1}}), "body.temperature",
              "expected a number from 0 to 100, got -0.1");
  ExpectError(Completion({{"temperature", "hot"}}), "body.temperature",
              "got \"hot\"");
  ExpectError(Completion({{"top_p", 1.1}}), "body.top_p", "got 1.1");
  ExpectError(Completion({{"top_k", -2}}), "body.top_k", "got -2");
  ExpectError(Completion({{"top_k", 1.5}}), "body.top_k", "an integer");
  ExpectError(Completion({{"min_p", 2}}), "body.min_p", "got 2");
  ExpectError(Completion({{"max_tokens", -1}}), "body.max_tokens", "got -1");
  ExpectError(Completion({{"max_tokens", UINT64_MAX}}), "body.max_tokens",
              "got 18446744073709551615");
  ExpectError(Completion({{"logprobs", kMostLogprobs + 1}}), "body.logprobs",
              "from 0 to 100");
  ExpectError(Completion({{"logprobs", true}}), "body.logprobs", "got true");
  ExpectError(Completion({{"echo", 1}}), "body.echo", "true or false");
  ExpectError(Completion({{"model", 1}}), "body.model", "a string");
  for (const Json& bad : {Json(1), Json(""), Json({"a", ""}), Json({1}),
                          Json({"a", "b", "c", "d", "e"}), Json::object()})
    ExpectError(Completion({{"stop", bad}}), "body.stop", "1 to 4");
}

TEST(BatchRequestTest, UnsupportedOptionsAreRefusedUnlessTheyDoNothing) {
  const Json does_nothing = {
      {"n", 1},
      {"best_of", 1},
      {"suffix", ""},
      {"stream", false},
      {"presence_penalty", 0.0},
      {"frequency_penalty", 0},
      {"logit_bias", Json::object()},
      {"user", "u"},
      {"metadata", {{"a", "b"}}},
      {"store", true},
      {"service_tier", "auto"},
      {"stream_options", nullptr},
      {"anything", nullptr},
  };
  Good(Completion(does_nothing));
  const Json not_supported = {{"n", 2},
                              {"best_of", 3},
                              {"suffix", "x"},
                              {"stream", true},
                              {"presence_penalty", 0.5},
                              {"frequency_penalty", -1},
                              {"logit_bias", {{"5", 1}}},
                              {"tools", Json::array()},
                              {"min_tokens", 1},
                              {"messages", Json::array()}};
  for (const auto& [name, value] : not_supported.items()) {
    ExpectError(Completion({{name, value}}), "body." + name, "supported");
  }
}

TEST(BatchRequestTest, AChatTakesMessagesAndItsOwnOptions) {
  const BatchLine line = Chat(
      {{"messages",
        {{{"role", "system"}, {"content", "Be kind."}},
         {{"role", "user"},
          {"content",
           {{{"type", "text"}, {"text", "a"}},
            {{"type", "text"}, {"text", "b"}}}}},
         {{"role", "assistant"}, {"content", ""}, {"tool_calls", nullptr}}}},
       {"max_completion_tokens", 9},
       {"max_tokens", 9},
       {"logprobs", true},
       {"top_logprobs", 2},
       {"response_format", {{"type", "text"}}},
       {"modalities", {"text"}},
       {"tools", Json::array()},
       {"tool_choice", "none"}});
  const BatchRequest& request = Good(line);
  EXPECT_THAT(std::get<std::vector<ChatMessage>>(request.input),
              ElementsAre(ChatMessage{ChatRole::kSystem, "Be kind."},
                          ChatMessage{ChatRole::kUser, "a\nb"},
                          ChatMessage{ChatRole::kAssistant, ""}));
  EXPECT_EQ(request.request.generate.max_tokens, 9);
  EXPECT_EQ(request.request.logprobs, 2);
}

TEST(BatchRequestTest, AChatGoesOnUntilTheContextIsFullUnlessItSays) {
  EXPECT_EQ(Good(Chat(Json::object())).request.generate.max_tokens, -1);
  EXPECT_EQ(Good(Chat({{"max_tokens", 3}})).request.generate.max_tokens, 3);
  ExpectError(Chat({{"max_tokens", 3}, {"max_completion_tokens", 4}}),
              "body.max_tokens", "expected 4");
}

TEST(BatchRequestTest, ScoresOfAChatAreAskedForByTwoOptions) {
  EXPECT_EQ(Good(Chat({{"logprobs", true}})).request.logprobs, 0);
  EXPECT_EQ(Good(Chat({{"logprobs", false}})).request.logprobs, std::nullopt);
  ExpectError(Chat({{"top_logprobs", 2}}), "body.top_logprobs",
              "nothing without logprobs");
  ExpectError(Chat({{"logprobs", 2}}), "body.logprobs", "true or false");
  ExpectError(Chat({{"echo", true}}), "body.echo", "not supported");
  ExpectError(Chat({{"response_format", {{"type", "json_object"}}}}),
              "body.response_format", "no other is supported");
  ExpectError(Chat({{"tools", {{{"type", "function"}}}}}), "body.tools",
              "supported");
}

TEST(BatchRequestTest, MessagesThatLoseSomethingAreRefused) {
  const auto with = [](const Json& message) {
    return Chat(
        {{"messages", {{{"role", "user"}, {"content", "a"}}, message}}});
  };
  ExpectError(with({{"role", "tool"}, {"content", "a"}}),
              "body.messages[1].role", "got \"tool\"");
  ExpectError(with({{"role", 3}, {"content", "a"}}), "body.messages[1].role",
              "got 3");
  ExpectError(with({{"role", "user"}}), "body.messages[1].content",
              "got nothing");
  ExpectError(with({{"role", "user"}, {"content", nullptr}}),
              "body.messages[1].content", "got nothing");
  ExpectError(with({{"role", "user"}, {"content", 7}}),
              "body.messages[1].content", "got 7");
  ExpectError(with({{"role", "user"}, {"content", Json::array()}}),
              "body.messages[1].content", "got an empty list");
  ExpectError(
      with({{"role", "user"},
            {"content",
             {{{"type", "text"}, {"text", "a"}},
              {{"type", "image_url"}, {"image_url", {{"url", "x"}}}}}}}),
      "body.messages[1].content[1]", "got \"image_url\"");
  ExpectError(with({{"role", "user"}, {"content", {"bare"}}}),
              "body.messages[1].content[0]", "got \"bare\"");
  ExpectError(with({{"role", "user"}, {"content", "a"}, {"name", "Ann"}}),
              "body.messages[1].name", "not supported");
  ExpectError(with({{"role", "assistant"},
                    {"content", "a"},
                    {"tool_calls", {{{"id", "x"}}}}}),
              "body.messages[1].tool_calls", "supported");
  ExpectError(with("a"), "body.messages[1]", "an object");
  ExpectError(Chat({{"messages", Json::array()}}), "body.messages",
              "at least one");
  ExpectError(Chat({{"messages", "Hello"}}), "body.messages", "got \"Hello\"");
}

TEST(BatchRequestTest, AnEmbeddingTakesOneTextOrMany) {
  using Ids = std::vector<TokenId>;
  using Inputs = decltype(BatchEmbedding::inputs);
  const auto inputs = [](const Json& input) {
    return Good(Embedding({{"input", input}})).embedding.inputs;
  };
  EXPECT_EQ(inputs("Hello"), (Inputs{"Hello"}));
  EXPECT_EQ(inputs({"a", "", "c"}), (Inputs{"a", "", "c"}));
  EXPECT_EQ(inputs({1, 0, 7}), (Inputs{Ids{1, 0, 7}}));
  EXPECT_EQ(inputs(Json::parse("[[1, 2], [3]]")), (Inputs{Ids{1, 2}, Ids{3}}));
  EXPECT_EQ(inputs(std::vector<std::string>(2048, "a")).size(), 2048u);

  const auto refuse = [](const Json& input, const std::string& param,
                         const std::string& message) {
    ExpectError(Embedding({{"input", input}}), "body." + param, message);
  };
  refuse(3, "input", "a list of strings");
  refuse(Json::array(), "input", "1 to 2048 texts");
  refuse(std::vector<std::string>(2049, "a"), "input", "1 to 2048 texts");
  refuse({"a", 7}, "input[1]", "got 7");
  refuse(Json::parse("[[1], []]"), "input[1]", "token ids");
  refuse({1, -1}, "input[1]", "a token id");
  refuse(Json::parse("[[1], [2, \"a\"]]"), "input[1][1]", "a token id");
}

TEST(BatchRequestTest, AnEmbeddingTakesPoolingFormatAndDimensions) {
  const BatchEmbedding plain = Good(Embedding(Json::object())).embedding;
  EXPECT_EQ(plain.pooling, std::nullopt);
  EXPECT_EQ(plain.format, EmbeddingFormat::kFloat);
  EXPECT_EQ(plain.dimensions, std::nullopt);
  const auto pooling = [](const char* name) {
    return Good(Embedding({{"pooling", name}})).embedding.pooling;
  };
  EXPECT_EQ(pooling("mean"), Pooling::kMean);
  EXPECT_EQ(pooling("last"), Pooling::kLast);
  EXPECT_EQ(pooling("cls"), Pooling::kCls);
  const auto format = [](const char* name) {
    return Good(Embedding({{"encoding_format", name}, {"user", "u"}}))
        .embedding.format;
  };
  EXPECT_EQ(format("float"), EmbeddingFormat::kFloat);
  EXPECT_EQ(format("base64"), EmbeddingFormat::kBase64);
  EXPECT_EQ(Good(Embedding({{"dimensions", 5}})).embedding.dimensions, 5);

  ExpectError(Embedding({{"pooling", "max"}}), "body.pooling",
              "mean, last or cls, got \"max\"");
  ExpectError(Embedding({{"pooling", 1}}), "body.pooling", "got 1");
  ExpectError(Embedding({{"encoding_format", "hex"}}), "body.encoding_format",
              "\"float\" or \"base64\"");
  ExpectError(Embedding({{"dimensions", 0}}), "body.dimensions", "got 0");
  ExpectError(Embedding({{"temperature", 0}}), "body.temperature", "supported");
}

TEST(BatchRequestTest, DimensionsOtherThanTheModelsAreRefused) {
  BatchEmbedding embedding;
  EXPECT_EQ(CheckDimensions(embedding, 64), std::nullopt);
  embedding.dimensions = 64;
  EXPECT_EQ(CheckDimensions(embedding, 64), std::nullopt);
  const auto wrong = CheckDimensions(embedding, 256);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->status_code, 400);
  EXPECT_EQ(wrong->param, "body.dimensions");
  EXPECT_THAT(wrong->message, HasSubstr("expected 256"));
}

TEST(BatchRequestTest, TheEnvelopeIsCheckedMemberByMember) {
  const auto with = [](const char* name, const Json& value) {
    Json line = LineOf("/v1/completions", {{"prompt", "a"}});
    line[name] = value;
    return ParseBatchLine(line.dump(), kSeed);
  };
  ExpectError(with("custom_id", nullptr), "custom_id", "got nothing");
  ExpectError(with("custom_id", ""), "custom_id", "1 to 512 bytes");
  ExpectError(with("custom_id", 5), "custom_id", "got 5");
  ExpectError(with("custom_id", std::string(513, 'x')), "custom_id", "512");
  EXPECT_FALSE(with("custom_id", std::string(512, 'x')).error);
  ExpectError(with("method", "GET"), "method", "got \"GET\"");
  ExpectError(with("url", "/v1/images"), "url", "/v1/embeddings, got");
  ExpectError(with("body", 1), "body", "an object");
  ExpectError(with("body", nullptr), "body", "got nothing");
  ExpectError(with("extra", 1), "extra", "not supported");
}

TEST(BatchRequestTest, ABadLineKeepsAnIdThatCanBeRead) {
  EXPECT_EQ(Completion({{"n", 2}}).custom_id, "r1");
  EXPECT_EQ(
      ParseBatchLine(R"({"custom_id": "q", "method": "PUT"})", 0).custom_id,
      "q");
}

TEST(BatchRequestTest, WhatIsNoJsonObjectIsAnInvalidLine) {
  for (const char* text : {"", "nonsense", "[1]", "{\"custom_id\": ", "\xFF",
                           "{\"a\":1,\"a\":2}", "null", "\x00"}) {
    const BatchLine line = ParseBatchLine(text, kSeed);
    ASSERT_TRUE(line.error) << text;
    EXPECT_EQ(line.error->code, "invalid_json_line") << text;
    EXPECT_EQ(line.custom_id, "");
  }
  EXPECT_THAT(ParseBatchLine("{\"a\": tru}", 0).error->message,
              HasSubstr("column 10"));
}

TEST(BatchRequestTest, TheSeedDependsOnTheIdAndTheJobAlone) {
  const auto seed_of = [](const char* id, uint64_t job, const Json& own) {
    Json line = LineOf("/v1/completions", {{"prompt", "a"}, {"seed", own}});
    line["custom_id"] = id;
    return ParseBatchLine(line.dump(), job)
        .request.request.generate.sampling.seed;
  };
  EXPECT_EQ(seed_of("a", 1, nullptr), seed_of("a", 1, nullptr));
  EXPECT_NE(seed_of("a", 1, nullptr), seed_of("b", 1, nullptr));
  EXPECT_NE(seed_of("a", 1, nullptr), seed_of("a", 2, nullptr));
  EXPECT_EQ(seed_of("a", 1, 7), 7u);
  EXPECT_EQ(seed_of("b", 2, 7), 7u);
}

TEST(BatchRequestTest, ADeepOrHugeLineIsAnErrorNotACrash) {
  std::string deep = R"({"custom_id": "a", "body": )";
  for (int i = 0; i < 500000; ++i) deep += "{\"a\":[";
  EXPECT_EQ(ParseBatchLine(deep, 0).error->code, "invalid_json_line");
  const BatchLine line = Completion({{"prompt", std::string(1 << 20, 'x')},
                                     {"unknown", std::string(1 << 20, 'y')}});
  ExpectError(line, "body.unknown", "...");
}

// Lines of our own with a few bytes changed: a request or an error, with an id
// that is in the line.
TEST(BatchRequestTest, ChangedLinesAreRequestsOrErrors) {
  const std::string whole =
      LineOf("/v1/chat/completions",
             {{"messages", {{{"role", "user"}, {"content", "é"}}}},
              {"stop", {"a"}},
              {"temperature", 0.5},
              {"seed", 1}})
          .dump();
  std::mt19937 random(2);
  int good = 0;
  for (int run = 0; run < 20000; ++run) {
    std::string text = whole;
    for (size_t change = random() % 3; change > 0; --change)
      text[random() % text.size()] = static_cast<char>(random());
    if (random() % 4 == 0) text.resize(random() % text.size());
    const BatchLine line = ParseBatchLine(text, kSeed);
    good += line.error ? 0 : 1;
    if (line.error) {
      EXPECT_FALSE(line.error->code.empty());
      EXPECT_EQ(line.error->message.find('\n'), std::string::npos) << text;
    } else {
      EXPECT_FALSE(line.custom_id.empty());
    }
  }
  EXPECT_GT(good, 1000);
}

}  // namespace
}  // namespace coldstream
