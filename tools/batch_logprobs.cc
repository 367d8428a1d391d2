#include "tools/batch_logprobs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/text_stream.h"
#include "runtime/utf8.h"
#include "tools/short_float.h"

namespace coldstream {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastLogprob = -9999;

double Shown(double log_probability) {
  if (!(log_probability > kLeastLogprob)) return kLeastLogprob;
  return ShortDouble(static_cast<float>(log_probability));
}

std::string BytesOf(TokenId id, const Tokenizer& tokenizer) {
  return tokenizer.Decode(id, /*with_special=*/true);
}

// A token's text as the key or entry of a completion's lists.
std::string TokenName(TokenId id, const Tokenizer& tokenizer) {
  const std::string bytes = BytesOf(id, tokenizer);
  if (ValidUtf8Prefix(bytes) == bytes.size()) return bytes;
  std::string name = "bytes:";
  for (const char c : bytes)
    name += absl::StrFormat("\\x%02x", static_cast<unsigned char>(c));
  return name;
}

// The best tokens and, behind them if it is not one, the token that was taken.
std::vector<TokenProbability> WithTaken(const TokenScore& score) {
  std::vector<TokenProbability> all = score.best;
  const bool there = std::any_of(
      all.begin(), all.end(),
      [&](const TokenProbability& one) { return one.id == score.token.id; });
  if (!there) all.push_back(score.token);
  return all;
}

// Characters that begin in `bytes`, also where they end in a later token.
int64_t CharactersIn(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char c) { return (c & '\xC0') != '\x80'; });
}

Json TopOfCompletion(const TokenScore& score, const Tokenizer& tokenizer) {
  Json top = Json::object();
  for (const TokenProbability& one : WithTaken(score)) {
    std::string name = TokenName(one.id, tokenizer);
    // Tokens with the same text: the better one stands for both.
    if (!top.contains(name)) top[std::move(name)] = Shown(one.log_probability);
  }
  return top;
}

Json ChatToken(const TokenProbability& token, const Tokenizer& tokenizer) {
  const std::string bytes = BytesOf(token.id, tokenizer);
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return {{"token", ReplaceInvalidUtf8(bytes)},
          {"logprob", Shown(token.log_probability)},
          {"bytes", std::move(list)}};
}

}  // namespace

Json CompletionLogprobs(const std::vector<ScoredToken>& tokens,
                        std::string_view text, const Tokenizer& tokenizer) {
  Json names = Json::array();
  Json logprobs = Json::array();
  Json top = Json::array();
  Json offsets = Json::array();
  int64_t offset = 0;
  bool first = true;
  for (const ScoredToken& token : tokens) {
    names.push_back(TokenName(token.id, tokenizer));
    logprobs.push_back(
        token.score ? Json(Shown(token.score->token.log_probability)) : Json());
    top.push_back(token.score ? TopOfCompletion(*token.score, tokenizer)
                              : Json());
    offsets.push_back(offset);
    const std::string shown = tokenizer.Decode(token.id);
    offset += CharactersIn(shown);
    // The space that a SentencePiece vocabulary has in front is not in the
    // text.
    if (first && shown.starts_with(' ') && !text.starts_with(' ')) --offset;
    first = first && shown.empty();
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(top)},
          {"text_offset", std::move(offsets)}};
}

Json ChatLogprobs(const std::vector<TokenScore>& scores,
                  const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const TokenScore& score : scores) {
    Json token = ChatToken(score.token, tokenizer);
    Json top = Json::array();
    for (const TokenProbability& one : score.best)
      top.push_back(ChatToken(one, tokenizer));
    token["top_logprobs"] = std::move(top);
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace coldstream
