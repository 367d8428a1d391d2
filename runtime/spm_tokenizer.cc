#include "runtime/spm_tokenizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "runtime/utf8.h"

namespace coldstream {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// Merged in one go; symbols count bytes in 32 bits. Longer text is cut.
constexpr size_t kLongestFragment = size_t{1} << 30;

// `text` as token texts are kept: spaces for their marks.
std::string Prepare(std::string_view text, bool space_prefix) {
  std::string out;
  out.reserve(text.size() + 1);
  if (space_prefix) out.push_back(' ');
  for (size_t pos = 0; pos < text.size();) {
    const size_t mark = std::min(text.find(kSpaceMark, pos), text.size());
    out.append(text.substr(pos, mark - pos));
    if (mark == text.size()) break;
    out.push_back(' ');
    pos = mark + kSpaceMark.size();
  }
  return out;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte of "<0xHH>".
std::optional<uint8_t> ByteOfText(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') {
    return std::nullopt;
  }
  const int high = HexDigit(text[3]);
  const int low = HexDigit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

// For files without token types: what the texts say.
void InferTypes(const StringArray& texts, Vocabulary* vocabulary) {
  for (size_t i = 0; i < texts.size(); ++i) {
    TokenType& type = vocabulary->types[i];
    if (type == TokenType::kNormal && ByteOfText(texts[i])) {
      type = TokenType::kByte;
    }
  }
  if (vocabulary->unknown) {
    vocabulary->types[static_cast<size_t>(*vocabulary->unknown)] =
        TokenType::kUnknown;
  }
}

// Higher scores get lower numbers: the bits of a float, made to sort.
uint32_t PriorityOfScore(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // no -0
  const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
  return ~rising;
}

}  // namespace

// How the unused tokens met in one fragment were put together; they exist only
// to be merged further and are taken apart again where that did not happen.
class SpmTokenizer::Unmerged {
 public:
  void Remember(TokenId id, size_t left_bytes) {
    left_bytes_.try_emplace(id, left_bytes);
  }
  size_t LeftBytes(TokenId id) const { return left_bytes_.at(id); }

 private:
  absl::flat_hash_map<TokenId, size_t> left_bytes_;
};

SpmTokenizer::SpmTokenizer(Vocabulary vocabulary, bool add_space_prefix)
    : VocabularyTokenizer(std::move(vocabulary)),
      add_space_prefix_(add_space_prefix) {}

StatusOr<std::unique_ptr<Tokenizer>> SpmTokenizer::Create(
    const Metadata& metadata, const TokenizerOptions& options) {
  if (!options.pre.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--pre %s: this model's tokenizer is SentencePiece "
        "(tokenizer.ggml.model is \"llama\") and has no pre-tokenizer",
        options.pre));
  }
  ASSIGN_OR_RETURN(const StringArray* texts, metadata.GetStrings(kTokensKey));
  ASSIGN_OR_RETURN(const FloatArray* scores, metadata.GetFloats(kScoresKey));
  ASSIGN_OR_RETURN(const bool add_space_prefix,
                   metadata.GetBoolOr("tokenizer.ggml.add_space_prefix", true));
  const FamilyDefaults defaults = {
      .add_bos = true, .bos = 1, .eos = 2, .unknown = 0};
  ASSIGN_OR_RETURN(Vocabulary vocabulary,
                   Vocabulary::FromMetadata(metadata, *texts, defaults));

  if (!metadata.Has("tokenizer.ggml.token_type")) {
    InferTypes(*texts, &vocabulary);
  }
  std::unique_ptr<SpmTokenizer> spm(
      new SpmTokenizer(std::move(vocabulary), add_space_prefix));
  RETURN_IF_ERROR(spm->ReadTokens(*texts));
  RETURN_IF_ERROR(spm->ReadScores(*scores));
  return spm;
}

Status SpmTokenizer::ReadTokens(const StringArray& texts) {
  if (texts.size() == 0 || texts.size() > INT32_MAX / 4) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: expected a vocabulary, got %d tokens", kTokensKey, texts.size()));
  }
  byte_ids_.fill(TokenTable::kNotFound);
  table_.Reserve(texts.size(), texts.memory_bytes());
  for (TokenId id = 0; vocabulary_.Contains(id); ++id) {
    const std::string_view spelled = texts[static_cast<size_t>(id)];
    if (vocabulary_.type(id) == TokenType::kByte) {
      const std::optional<uint8_t> byte = ByteOfText(spelled);
      if (!byte) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "%s: entry %d is a byte token: expected <0x00> to <0xFF>, got "
            "\"%s\"",
            kTokensKey, id, spelled));
      }
      const char text = static_cast<char>(*byte);
      table_.Add({&text, 1});
      if (byte_ids_[*byte] == TokenTable::kNotFound) byte_ids_[*byte] = id;
      continue;
    }
    if (vocabulary_.IsSpecial(id)) {
      table_.Add(spelled);
      continue;
    }
    table_.Add(Prepare(spelled, /*space_prefix=*/false));
    if (table_.Text(id).empty()) continue;
    table_.Index(id);
    longest_ = std::max(longest_, table_.Text(id).size());
  }
  FindSpecialTokens();
  return absl::OkStatus();
}

Status SpmTokenizer::ReadScores(const FloatArray& scores) {
  if (scores.size() != vocabulary_.types.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: expected one entry for each of %d tokens, got %d",
                        kScoresKey, vocabulary_.types.size(), scores.size()));
  }
  priorities_.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: entry %d: expected a number, got NaN", kScoresKey, i));
    }
    priorities_.push_back(PriorityOfScore(scores[i]));
  }
  return absl::OkStatus();
}

std::vector<TokenId> SpmTokenizer::EncodeRegions(std::string_view text,
                                                 Regions regions) const {
  std::vector<TokenId> ids;
  bool at_start = true;
  splitter_.Split(table_, text, regions,
                  [&](const SpecialTokenSplitter::Fragment& fragment) {
                    if (fragment.token >= 0) {
                      ids.push_back(fragment.token);
                    } else {
                      const bool prefix = at_start && add_space_prefix_;
                      EncodeFragment(Prepare(fragment.text, prefix), &ids);
                    }
                    at_start = false;
                  });
  return ids;
}

void SpmTokenizer::EncodeFragment(std::string_view text,
                                  std::vector<TokenId>* ids) const {
  while (text.size() > kLongestFragment) {
    size_t cut = kLongestFragment;  // not inside a character
    while (cut > kLongestFragment - 4 && (text[cut] & '\xC0') == '\x80') --cut;
    EncodeFragment(text.substr(0, cut), ids);
    text.remove_prefix(cut);
  }
  PairMerger merger;
  for (size_t pos = 0; pos < text.size();) {
    const size_t length = DecodeUtf8(text, pos).length;
    merger.Add(table_.Find(text.substr(pos, length)),
               static_cast<uint32_t>(length));
    pos += length;
  }
  Unmerged unmerged;
  merger.Run([&](const PairMerger::Symbol& left,
                 const PairMerger::Symbol& right) -> std::optional<PairMerge> {
    const size_t length = size_t{left.length} + right.length;
    if (length > longest_) return std::nullopt;
    const TokenId id = table_.Find(text.substr(left.begin, length));
    if (id == TokenTable::kNotFound) return std::nullopt;
    if (vocabulary_.type(id) == TokenType::kUnused) {
      unmerged.Remember(id, left.length);
    }
    return PairMerge{priorities_[static_cast<size_t>(id)], id};
  });
  merger.ForEach([&](const PairMerger::Symbol& symbol) {
    Emit(text.substr(symbol.begin, symbol.length), symbol.id, unmerged, ids);
  });
}

void SpmTokenizer::Emit(std::string_view text, TokenId id,
                        const Unmerged& unmerged,
                        std::vector<TokenId>* ids) const {
  // Parts still to give out, the next one last.
  std::vector<std::pair<std::string_view, TokenId>> parts = {{text, id}};
  while (!parts.empty()) {
    const auto [part, token] = parts.back();
    parts.pop_back();
    if (token == TokenTable::kNotFound) {
      EmitBytes(part, ids);
    } else if (vocabulary_.type(token) != TokenType::kUnused ||
               DecodeUtf8(part, 0).length == part.size()) {
      ids->push_back(token);
    } else {
      const std::string_view left = part.substr(0, unmerged.LeftBytes(token));
      const std::string_view right = part.substr(left.size());
      parts.emplace_back(right, table_.Find(right));
      parts.emplace_back(left, table_.Find(left));
    }
  }
}

void SpmTokenizer::EmitBytes(std::string_view text,
                             std::vector<TokenId>* ids) const {
  for (const char byte : text) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id != TokenTable::kNotFound) {
      ids->push_back(id);
    } else if (vocabulary_.unknown &&
               (ids->empty() || ids->back() != *vocabulary_.unknown)) {
      ids->push_back(*vocabulary_.unknown);
    }
  }
}

std::string SpmTokenizer::DecodeAll(const std::vector<TokenId>& ids) const {
  std::string text;
  size_t first = 0;
  if (!ids.empty() && vocabulary_.bos && ids[0] == *vocabulary_.bos) first = 1;
  for (size_t i = first; i < ids.size(); ++i) {
    const TokenId id = ids[i];
    if (!vocabulary_.Contains(id) || vocabulary_.IsSpecial(id)) continue;
    std::string_view piece = table_.Text(id);
    const bool prefixed =
        i == first && vocabulary_.type(id) != TokenType::kUserDefined;
    if (add_space_prefix_ && prefixed && piece.starts_with(' ')) {
      piece.remove_prefix(1);
    }
    text += piece;
  }
  return text;
}

uint64_t SpmTokenizer::memory_bytes() const {
  return sizeof(*this) + vocabulary_bytes() +
         priorities_.capacity() * sizeof(uint32_t);
}

}  // namespace coldstream
