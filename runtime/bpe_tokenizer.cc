#include "runtime/bpe_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/byte_level.h"
#include "runtime/nfc.h"

namespace coldstream {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

// Longest word merged in one go; symbols are counted in 32 bits. Longer words
// are cut, which no text below a gigabyte without a break can notice.
constexpr size_t kLongestWord = size_t{1} << 30;

uint64_t PairKey(TokenId left, TokenId right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) |
         static_cast<uint32_t>(right);
}

}  // namespace

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, PreTokenizer pre)
    : VocabularyTokenizer(std::move(vocabulary)), pre_(std::move(pre)) {}

StatusOr<std::unique_ptr<Tokenizer>> BpeTokenizer::Create(
    const Metadata& metadata, const TokenizerOptions& options) {
  std::string name = options.pre;
  if (name.empty()) {
    ASSIGN_OR_RETURN(name, metadata.GetStringOr("tokenizer.ggml.pre", ""));
  }
  ASSIGN_OR_RETURN(PreTokenizer pre, PreTokenizer::Create(name));
  ASSIGN_OR_RETURN(const StringArray* texts, metadata.GetStrings(kTokensKey));
  ASSIGN_OR_RETURN(const StringArray* merges, metadata.GetStrings(kMergesKey));
  FamilyDefaults defaults;
  defaults.add_bos = pre.rule().add_bos;
  ASSIGN_OR_RETURN(Vocabulary vocabulary,
                   Vocabulary::FromMetadata(metadata, *texts, defaults));

  std::unique_ptr<BpeTokenizer> bpe(
      new BpeTokenizer(std::move(vocabulary), std::move(pre)));
  RETURN_IF_ERROR(bpe->ReadTokens(*texts));
  RETURN_IF_ERROR(bpe->ReadMerges(*merges));
  return bpe;
}

Status BpeTokenizer::ReadTokens(const StringArray& texts) {
  if (texts.size() == 0 || texts.size() > INT32_MAX / 4) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: expected a vocabulary, got %d tokens", kTokensKey, texts.size()));
  }
  table_.Reserve(texts.size() + 256, texts.memory_bytes());
  std::string bytes;
  for (TokenId id = 0; vocabulary_.Contains(id); ++id) {
    const std::string_view spelled = texts[static_cast<size_t>(id)];
    bytes.clear();
    // Special tokens are spelled as they are. So is an ordinary one with a
    // character outside the byte map; nothing merges to it.
    const bool literal = vocabulary_.IsSpecial(id) ||
                         vocabulary_.type(id) == TokenType::kUserDefined ||
                         !FromByteLevel(spelled, &bytes);
    table_.Add(literal ? spelled : bytes);
    if (!literal) table_.Index(id);
  }
  FindSpecialTokens();
  if (vocabulary_.unknown &&
      vocabulary_.type(*vocabulary_.unknown) != TokenType::kControl) {
    unknown_ = vocabulary_.unknown;
  }
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const char text = static_cast<char>(static_cast<uint8_t>(byte));
    byte_ids_[byte] = Intern(ToByteLevel({&text, 1}));
  }
  return absl::OkStatus();
}

Status BpeTokenizer::ReadMerges(const StringArray& merges) {
  if (merges.size() > INT32_MAX / 4) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: too many merges: %d", kMergesKey, merges.size()));
  }
  merges_.reserve(merges.size());
  std::string merged;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const size_t space = merge.find(' ', 1);  // the first part is never empty
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: entry %d: expected two texts with a space between, got \"%s\"",
          kMergesKey, rank, merge));
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    merged.assign(left).append(right);
    const PairMerge value = {static_cast<uint32_t>(rank), Intern(merged)};
    merges_.try_emplace(PairKey(Intern(left), Intern(right)), value);
  }
  return absl::OkStatus();
}

TokenId BpeTokenizer::Intern(std::string_view spelled) {
  std::string bytes;
  if (!FromByteLevel(spelled, &bytes)) bytes = spelled;
  TokenId id = table_.Find(bytes);
  if (id == TokenTable::kNotFound) {
    id = table_.Add(bytes);
    table_.Index(id);
  }
  return id;
}

std::optional<PairMerge> BpeTokenizer::FindMerge(TokenId left,
                                                 TokenId right) const {
  const auto merge = merges_.find(PairKey(left, right));
  if (merge == merges_.end()) return std::nullopt;
  return merge->second;
}

std::vector<TokenId> BpeTokenizer::EncodeRegions(std::string_view text,
                                                 Regions regions) const {
  std::vector<TokenId> ids;
  PairMerger merger;
  PreTokenizer::Scratch scratch(pre_);
  const auto word = [&](std::string_view piece) {
    for (; piece.size() > kLongestWord; piece.remove_prefix(kLongestWord)) {
      EncodeWord(piece.substr(0, kLongestWord), &merger, &ids);
    }
    EncodeWord(piece, &merger, &ids);
  };
  splitter_.Split(table_, text, regions,
                  [&](const SpecialTokenSplitter::Fragment& fragment) {
                    if (fragment.token >= 0) {
                      ids.push_back(fragment.token);
                    } else if (pre_.rule().normalize_nfc &&
                               !IsCertainlyNfc(fragment.text)) {
                      pre_.Split(NormalizeNfc(fragment.text), &scratch, word);
                    } else {
                      pre_.Split(fragment.text, &scratch, word);
                    }
                  });
  return ids;
}

void BpeTokenizer::EncodeWord(std::string_view word, PairMerger* merger,
                              std::vector<TokenId>* ids) const {
  if (pre_.rule().ignore_merges) {
    const TokenId id = table_.Find(word);
    if (vocabulary_.Contains(id)) {
      ids->push_back(id);
      return;
    }
  }
  merger->Clear();
  for (const char byte : word) {
    merger->Add(byte_ids_[static_cast<uint8_t>(byte)], 1);
  }
  merger->Run(
      [this](const PairMerger::Symbol& left, const PairMerger::Symbol& right) {
        return FindMerge(left.id, right.id);
      });
  merger->ForEach(
      [&](const PairMerger::Symbol& symbol) { Emit(symbol.id, ids); });
}

void BpeTokenizer::Emit(TokenId symbol, std::vector<TokenId>* ids) const {
  if (vocabulary_.Contains(symbol)) {
    ids->push_back(symbol);
    return;
  }
  for (const char byte : table_.Text(symbol)) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(byte)];
    if (vocabulary_.Contains(id)) {
      ids->push_back(id);
    } else if (unknown_) {
      ids->push_back(*unknown_);
    }
  }
}

std::string BpeTokenizer::DecodeAll(const std::vector<TokenId>& ids) const {
  std::string text;
  for (const TokenId id : ids) {
    if (vocabulary_.Contains(id) && !vocabulary_.IsSpecial(id)) {
      text += table_.Text(id);
    }
  }
  return text;
}

std::string BpeTokenizer::description() const {
  return absl::StrFormat("gpt2/%s", pre_.rule().name);
}

uint64_t BpeTokenizer::memory_bytes() const {
  using Slot = decltype(merges_)::value_type;
  return sizeof(*this) + vocabulary_bytes() + pre_.memory_bytes() +
         merges_.capacity() * (sizeof(Slot) + 1);
}

}  // namespace coldstream
