#include "runtime/vocabulary.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";

// Texts that end a turn or a document in published vocabularies: files often
// name only one of the several their model emits.
constexpr std::array<std::string_view, 16> kEndTexts = {
    "<|im_end|>",      "<|eot_id|>",
    "<|end_of_text|>", "<|endoftext|>",
    "<|eom_id|>",      "<|END_OF_TURN_TOKEN|>",
    "<end_of_turn>",   "</s>",
    "<|end|>",         "<|eot|>",
    "<|end_of_turn|>", "<|EOT|>",
    "<EOT>",           "<end_of_utterance>",
    "<|return|>",      "<|endofturn|>"};

StatusOr<std::vector<TokenType>> ReadTypes(const Metadata& metadata,
                                           size_t tokens) {
  std::vector<TokenType> types(tokens, TokenType::kNormal);
  if (!metadata.Has(kTypesKey)) return types;
  ASSIGN_OR_RETURN(const IntArray* numbers, metadata.GetInts(kTypesKey));
  if (numbers->size() != tokens) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: expected one entry for each of %d tokens, got %d",
                        kTypesKey, tokens, numbers->size()));
  }
  for (size_t i = 0; i < tokens; ++i) {
    const int64_t number = (*numbers)[i];
    if (number < 1 || number > 6) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: entry %d: expected 1 to 6, got %d", kTypesKey, i, number));
    }
    types[i] = static_cast<TokenType>(number);
  }
  return types;
}

// The id under `key`; nullopt where it is missing or the file's "none" (-1 in
// 32 or 64 bits).
StatusOr<std::optional<TokenId>> ReadId(const Metadata& metadata,
                                        std::string_view key, size_t tokens,
                                        std::optional<TokenId> fallback) {
  if (!metadata.Has(key)) {
    const bool usable = fallback && static_cast<size_t>(*fallback) < tokens;
    return usable ? fallback : std::nullopt;
  }
  ASSIGN_OR_RETURN(const int64_t id, metadata.GetInt(key));
  if (id == -1 || id == INT64_C(0xFFFFFFFF)) return std::nullopt;
  if (id < 0 || static_cast<uint64_t>(id) >= tokens) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: expected an id below the %d tokens, got %d", key, tokens, id));
  }
  return static_cast<TokenId>(id);
}

bool LooksLikeControl(std::string_view text) {
  return text.size() > 2 && text.front() == '<' && text.back() == '>';
}

}  // namespace

StatusOr<Vocabulary> Vocabulary::FromMetadata(const Metadata& metadata,
                                              const StringArray& texts,
                                              const FamilyDefaults& defaults) {
  Vocabulary v;
  const size_t tokens = texts.size();
  ASSIGN_OR_RETURN(v.types, ReadTypes(metadata, tokens));
  const auto read = [&](std::string_view key, std::optional<TokenId> fallback) {
    return ReadId(metadata, key, tokens, fallback);
  };
  ASSIGN_OR_RETURN(v.bos, read("tokenizer.ggml.bos_token_id", defaults.bos));
  ASSIGN_OR_RETURN(v.eos, read("tokenizer.ggml.eos_token_id", defaults.eos));
  ASSIGN_OR_RETURN(v.unknown,
                   read("tokenizer.ggml.unknown_token_id", defaults.unknown));
  ASSIGN_OR_RETURN(const std::optional<TokenId> eot,
                   read("tokenizer.ggml.eot_token_id", std::nullopt));
  ASSIGN_OR_RETURN(const std::optional<TokenId> eom,
                   read("tokenizer.ggml.eom_token_id", std::nullopt));
  RETURN_IF_ERROR(
      read("tokenizer.ggml.padding_token_id", std::nullopt).status());

  for (const std::optional<TokenId>& id : {v.bos, v.eos, eot, eom}) {
    // Early conversions call every token normal; user text must not become
    // one of these.
    if (id && v.type(*id) == TokenType::kNormal &&
        LooksLikeControl(texts[static_cast<size_t>(*id)])) {
      v.types[static_cast<size_t>(*id)] = TokenType::kControl;
    }
  }
  std::vector<TokenId>& end = v.end_of_generation;
  for (const std::optional<TokenId>& id : {v.eos, eot, eom}) {
    if (id) end.push_back(*id);
  }
  for (size_t i = 0; i < tokens; ++i) {
    const bool whole = v.types[i] == TokenType::kControl ||
                       v.types[i] == TokenType::kUserDefined;
    if (whole && std::find(kEndTexts.begin(), kEndTexts.end(), texts[i]) !=
                     kEndTexts.end()) {
      end.push_back(static_cast<TokenId>(i));
    }
  }
  std::sort(end.begin(), end.end());
  end.erase(std::unique(end.begin(), end.end()), end.end());

  constexpr std::string_view kAddBos = "tokenizer.ggml.add_bos_token";
  ASSIGN_OR_RETURN(v.add_bos, metadata.GetBoolOr(kAddBos, defaults.add_bos));
  ASSIGN_OR_RETURN(v.add_eos,
                   metadata.GetBoolOr("tokenizer.ggml.add_eos_token", false));
  if (v.add_bos && !v.bos) {
    if (metadata.Has(kAddBos)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s is true but tokenizer.ggml.bos_token_id is missing", kAddBos));
    }
    v.add_bos = false;
  }
  if (v.add_eos && !v.eos) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.add_eos_token is true but "
        "tokenizer.ggml.eos_token_id is missing");
  }
  return v;
}

std::vector<TokenId> VocabularyTokenizer::Encode(std::string_view text,
                                                 SpecialTokens special) const {
  const SpecialTokenSplitter::Region whole = {text.size(), special};
  return EncodeRegions(text, {&whole, 1});
}

std::vector<TokenId> VocabularyTokenizer::EncodePieces(
    std::span<const TextPiece> pieces) const {
  std::string text;
  std::vector<SpecialTokenSplitter::Region> regions;
  regions.reserve(pieces.size());
  for (const TextPiece& piece : pieces) {
    text += piece.text;
    regions.push_back({text.size(), piece.special});
  }
  return EncodeRegions(text, regions);
}

std::string VocabularyTokenizer::Decode(TokenId id, bool with_special) const {
  if (!vocabulary_.Contains(id)) return "";
  if (vocabulary_.IsSpecial(id) && !with_special) return "";
  return std::string(table_.Text(id));
}

void VocabularyTokenizer::FindSpecialTokens() {
  std::vector<SpecialTokenSplitter::Entry> entries;
  for (TokenId id = 0; vocabulary_.Contains(id); ++id) {
    const bool always = vocabulary_.type(id) == TokenType::kUserDefined;
    if (always || vocabulary_.IsSpecial(id)) entries.push_back({id, always});
  }
  splitter_ = SpecialTokenSplitter(table_, std::move(entries));
}

uint64_t VocabularyTokenizer::vocabulary_bytes() const {
  return vocabulary_.types.capacity() * sizeof(TokenType) +
         vocabulary_.end_of_generation.capacity() * sizeof(TokenId) +
         table_.memory_bytes() + splitter_.memory_bytes();
}

}  // namespace coldstream
