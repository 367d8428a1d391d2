#include "tools/batch_result.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/text_stream.h"
#include "tools/batch_logprobs.h"
#include "tools/embeddings_text.h"

namespace coldstream {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kIdPrefix = "batch_req_";

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace) +
         "\n";
}

Json Envelope(const BatchKey& key, int status_code, Json body, Json error) {
  Json custom_id;  // null
  if (!key.custom_id.empty()) custom_id = key.custom_id;
  Json line;
  line["id"] = BatchResultId(key.line);
  line["custom_id"] = std::move(custom_id);
  line["response"]["status_code"] = status_code;
  line["response"]["request_id"] = absl::StrFormat("req_%d", key.line);
  line["response"]["body"] = std::move(body);
  line["error"] = std::move(error);
  return line;
}

std::string SuccessLine(const BatchKey& key, Json body) {
  return Dump(Envelope(key, 200, std::move(body), nullptr));
}

std::string NameOf(const BatchRequest& request, const BatchModel& model) {
  return request.model.empty() ? model.name : request.model;
}

Json Usage(int64_t prompt_tokens, int64_t completion_tokens) {
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", prompt_tokens + completion_tokens}};
}

// What echo puts in front: the text as it was, or what the ids stand for.
std::string PromptText(const BatchRequest& request,
                       const Tokenizer& tokenizer) {
  if (const auto* text = std::get_if<std::string>(&request.input)) return *text;
  return ReplaceInvalidUtf8(
      tokenizer.DecodeAll(request.request.generate.prompt));
}

std::vector<ScoredToken> ScoredTokens(const BatchRequest& request,
                                      const RequestResult& result) {
  std::vector<ScoredToken> tokens;
  if (request.request.echo) {
    const std::vector<TokenId>& prompt = request.request.generate.prompt;
    for (size_t i = 0; i < prompt.size(); ++i) {
      tokens.push_back({.id = prompt[i]});
      // The first token follows nothing that could have foretold it.
      if (i > 0 && i - 1 < result.prompt_scores.size())
        tokens.back().score = result.prompt_scores[i - 1];
    }
  }
  for (const TokenScore& score : result.generated_scores)
    tokens.push_back({.id = score.token.id, .score = score});
  return tokens;
}

Json CompletionChoice(const BatchRequest& request, const RequestResult& result,
                      const Tokenizer* tokenizer) {
  std::string text = result.generated.text;
  if (request.request.echo)
    text = PromptText(request, *tokenizer) + std::move(text);
  Json logprobs;  // null
  if (request.request.logprobs) {
    logprobs =
        CompletionLogprobs(ScoredTokens(request, result), text, *tokenizer);
  }
  return {{"index", 0},
          {"text", std::move(text)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", FinishReasonName(result.generated.finish)}};
}

Json ChatChoice(const BatchRequest& request, const RequestResult& result,
                const Tokenizer* tokenizer) {
  Json logprobs;  // null
  if (request.request.logprobs)
    logprobs = ChatLogprobs(result.generated_scores, *tokenizer);
  Json message = {{"role", "assistant"},
                  {"content", result.generated.text},
                  {"refusal", nullptr}};
  return {{"index", 0},
          {"message", std::move(message)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", FinishReasonName(result.generated.finish)}};
}

}  // namespace

std::string BatchResultId(int64_t line) {
  return absl::StrFormat("%s%d", std::string(kIdPrefix), line);
}

int64_t LineOfBatchResultId(std::string_view id) {
  if (!id.starts_with(kIdPrefix)) return -1;
  id.remove_prefix(kIdPrefix.size());
  int64_t line = -1;
  const auto read = std::from_chars(id.data(), id.data() + id.size(), line);
  const bool whole =
      read.ec == std::errc() && read.ptr == id.data() + id.size() && line > 0;
  return whole ? line : -1;
}

std::string BatchErrorLine(const BatchKey& key, const BatchError& error) {
  Json param;  // null
  if (!error.param.empty()) param = error.param;
  const Json full = {{"message", error.message},
                     {"type", error.status_code < 500 ? "invalid_request_error"
                                                      : "server_error"},
                     {"param", std::move(param)},
                     {"code", error.code}};
  Json body;
  body["error"] = full;
  Json brief = {{"code", error.code}, {"message", error.message}};
  return Dump(
      Envelope(key, error.status_code, std::move(body), std::move(brief)));
}

std::string BatchAnswerLine(const BatchKey& key, const BatchRequest& request,
                            const RequestResult& result,
                            const BatchModel& model) {
  if (!result.status.ok())
    return BatchErrorLine(key, BatchErrorOf(result.status));
  const bool chat = request.endpoint == BatchEndpoint::kChatCompletions;
  Json choice = chat ? ChatChoice(request, result, model.tokenizer)
                     : CompletionChoice(request, result, model.tokenizer);
  Json body;
  body["id"] = absl::StrFormat("%s-%d", chat ? "chatcmpl" : "cmpl", key.line);
  body["object"] = chat ? "chat.completion" : "text_completion";
  body["created"] = 0;
  body["model"] = NameOf(request, model);
  body["choices"] = Json::array();
  body["choices"].push_back(std::move(choice));
  body["usage"] = Usage(result.prompt_tokens,
                        static_cast<int64_t>(result.generated.tokens.size()));
  return SuccessLine(key, std::move(body));
}

std::string BatchEmbeddingLine(const BatchKey& key, const BatchRequest& request,
                               const GatheredEmbeddings& all,
                               const BatchModel& model) {
  if (!all.status.ok()) return BatchErrorLine(key, BatchErrorOf(all.status));
  Json body;
  body["object"] = "list";
  body["data"] = Json::array();
  body["model"] = NameOf(request, model);
  body["usage"] = {{"prompt_tokens", all.prompt_tokens},
                   {"total_tokens", all.prompt_tokens}};
  std::string line = SuccessLine(key, std::move(body));
  // Millions of values as JSON objects would be many times their text. A quote
  // inside of a string has a backslash before it, so this is the member.
  constexpr std::string_view kData = "\"data\":[";
  line.insert(line.find(kData) + kData.size(),
              EmbeddingsText(all.vectors, request.embedding.format));
  return line;
}

}  // namespace coldstream
