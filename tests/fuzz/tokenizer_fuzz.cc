// Any bytes through every tokenizer family and rule, and any texts as a
// vocabulary.
//
// Input: one byte that chooses, then the text. Encoding must give ids of the
// vocabulary, no control id where none was asked for, and the same bytes back
// (composed, where the rule composes; spaces for U+2581 in SentencePiece).
// A choice past the fixed vocabularies makes one of the input's lines: tokens
// with types and scores, up to an empty line, then merges, then the text.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "runtime/nfc.h"
#include "runtime/tokenizer.h"
#include "tests/runtime/small_vocabulary.h"

namespace coldstream {
namespace {

constexpr std::string_view kRules[] = {"llama-bpe", "qwen2", "command-r",
                                       "smollm",    "gpt-2", "default"};
constexpr size_t kRuleCount = std::size(kRules);

std::unique_ptr<Tokenizer> MakeBpe(std::string_view rule) {
  SmallBpe bpe(rule);
  for (std::string unit : {"a", " ", "\n", "7", "<", "\xE2"}) {
    for (int i = 0; i < 4; ++i, unit += unit) bpe.Merge(unit, unit);
  }
  bpe.Merge("\xC3", "\xA9");
  bpe.Merge("t", "he");  // through a text without a token
  bpe.OnlyMerge("h", "e");
  bpe.Add("<|end|>", TokenType::kControl);
  bpe.Add("<|", TokenType::kUserDefined);
  return *Tokenizer::Create(bpe.Build());
}

std::unique_ptr<Tokenizer> MakeSpm() {
  SmallSpm spm;
  for (std::string unit : {"a", "\u2581", "\n", "7", "<", "\u00E9"}) {
    for (int i = 0; i < 4; ++i, unit += unit) {
      spm.Add(unit, static_cast<float>(-i),
              i == 2 ? TokenType::kUnused : TokenType::kNormal);
    }
  }
  spm.Add("<|end|>", 0, TokenType::kControl);
  spm.Add("<|", 0, TokenType::kUserDefined);
  return *Tokenizer::Create(spm.Build());
}

std::string_view NextLine(std::string_view* rest) {
  const size_t end = rest->find('\n');
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return line;
}

// A vocabulary out of `rest`, which is left at what follows it; null where it
// is refused.
std::unique_ptr<Tokenizer> MakeFromInput(uint8_t choice,
                                         std::string_view* rest) {
  StringArray tokens, merges;
  IntArray types;
  FloatArray scores;
  while (!rest->empty()) {
    const std::string_view line = NextLine(rest);
    if (line.empty()) break;
    tokens.Append(line.substr(1));
    types.push_back(static_cast<uint8_t>(line[0]) % 7);  // 0 is refused
    scores.push_back(static_cast<float>(static_cast<int8_t>(line[0])));
  }
  while (!rest->empty()) {
    const std::string_view line = NextLine(rest);
    if (line.empty()) break;
    merges.Append(line);
  }
  Metadata m;
  m.Insert("tokenizer.ggml.model",
           std::string(choice % 2 == 0 ? "gpt2" : "llama"));
  if (choice % 2 == 0) {
    m.Insert("tokenizer.ggml.pre", std::string(kRules[choice % kRuleCount]));
  }
  m.Insert("tokenizer.ggml.tokens", std::move(tokens));
  m.Insert("tokenizer.ggml.merges", std::move(merges));
  m.Insert("tokenizer.ggml.token_type", std::move(types));
  m.Insert("tokenizer.ggml.scores", std::move(scores));
  auto tokenizer = Tokenizer::Create(m);
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

std::string SpacesForMarks(std::string text) {
  for (size_t at; (at = text.find("\u2581")) != std::string::npos;) {
    text[at] = ' ';
    text.erase(at + 1, 2);
  }
  return text;
}

void CheckIds(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
              bool may_be_special) {
  for (const TokenId id : ids) {
    CHECK(id >= 0 && id < tokenizer.vocab_size());
    // A control or unknown token shows only where asked for.
    const bool special = tokenizer.Decode(id) != tokenizer.Decode(id, true);
    CHECK(may_be_special || !special);
  }
}

void Check(const Tokenizer& tokenizer, std::string_view text, bool exact) {
  CheckIds(tokenizer, tokenizer.Encode(text, SpecialTokens::kParse), true);
  const auto ids = tokenizer.Encode(text, SpecialTokens::kAsText);
  const std::string back = tokenizer.DecodeAll(ids);
  CheckIds(tokenizer, ids, !exact);
  if (!exact) return;
  const std::string description = tokenizer.description();
  if (description == "llama") {
    CHECK(back == SpacesForMarks(std::string(text)));
  } else if (description == "gpt2/qwen2" || description == "gpt2/command-r") {
    CHECK(NormalizeNfc(back) == NormalizeNfc(text));
  } else {
    CHECK(back == text);
  }
}

}  // namespace
}  // namespace coldstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using coldstream::Tokenizer;
  if (size == 0) return 0;
  static const auto* const fixed = [] {
    auto* all = new std::vector<std::unique_ptr<Tokenizer>>();
    for (const auto rule : coldstream::kRules) {
      all->push_back(coldstream::MakeBpe(rule));
    }
    all->push_back(coldstream::MakeSpm());
    return all;
  }();
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] < fixed->size()) {
    coldstream::Check(*(*fixed)[data[0]], text, /*exact=*/true);
  } else if (const auto made = coldstream::MakeFromInput(data[0], &text)) {
    coldstream::Check(*made, text, /*exact=*/false);
  }
  return 0;
}
