#include "tools/synth_tokenizer.h"

#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "tools/synth_words.h"

namespace coldstream {
namespace {

constexpr int64_t kNormalToken = 1;
constexpr int64_t kControlToken = 3;

// Bytes whose character is themselves in Latin-1 and can be seen.
bool IsVisible(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
         (byte >= 0xae && byte <= 0xff);
}

// U+0000..U+07FF.
std::string Utf8(int code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3f))};
}

// Collects tokens and merges until the vocabulary is full.
class MergeList {
 public:
  MergeList(SynthVocabulary* vocabulary, int64_t merges)
      : vocabulary_(vocabulary), left_(merges) {}

  bool full() const { return left_ == 0; }

  void AddByte(const std::string& text) {
    seen_.insert(text);
    vocabulary_->tokens.Append(text);
  }

  // Both sides are tokens. Nothing happens where the result is a token already.
  void Join(const std::string& left, const std::string& right) {
    if (full()) return;
    std::string joined = left + right;
    if (seen_.contains(joined)) return;
    DCHECK(seen_.contains(left) && seen_.contains(right));
    vocabulary_->tokens.Append(joined);
    vocabulary_->merges.Append(absl::StrCat(left, " ", right));
    seen_.insert(std::move(joined));
    --left_;
  }

  // start, start + w[0], start + w[0] + w[1], ...: `word` letter by letter.
  void Spell(std::string start, std::string_view word) {
    for (const char letter : word) {
      const std::string right(1, letter);
      if (!start.empty()) Join(start, right);
      start += right;
    }
  }

 private:
  SynthVocabulary* vocabulary_;
  int64_t left_;
  absl::flat_hash_set<std::string> seen_;
};

void AddMerges(MergeList& list) {
  const std::string space = ByteToVocabularyText(' ');
  std::string spaces = space;
  for (int i = 0; i < 4; ++i, spaces += spaces) list.Join(spaces, spaces);
  const std::string newline = ByteToVocabularyText('\n');
  list.Join(newline, newline);

  const std::vector<std::string> words =
      absl::StrSplit(kSynthWords, ' ', absl::SkipEmpty());
  for (const std::string& word : words) {
    list.Spell(space, word);
    list.Spell("", word);
  }
  // Pairs of words, frequent ones first: along the diagonals of the table.
  const size_t count = words.size();
  for (size_t sum = 0; sum + 1 < 2 * count && !list.full(); ++sum) {
    for (size_t i = sum < count ? 0 : sum - count + 1; i <= sum && i < count;
         ++i) {
      const std::string& second = words[sum - i];
      list.Join(space + words[i], second);
      list.Join(words[i], second);
    }
  }
}

}  // namespace

std::string ByteToVocabularyText(uint8_t byte) {
  if (IsVisible(byte)) return Utf8(byte);
  int hidden_before = 0;
  for (int b = 0; b < byte; ++b) hidden_before += IsVisible(b) ? 0 : 1;
  return Utf8(0x100 + hidden_before);
}

SynthVocabulary MakeSynthVocabulary(int64_t vocab_size) {
  CHECK(vocab_size >= kMinSynthVocab && vocab_size <= kMaxSynthVocab);
  SynthVocabulary vocabulary;
  MergeList list(&vocabulary, vocab_size - kMinSynthVocab);
  for (const bool visible : {true, false})
    for (int byte = 0; byte < 256; ++byte)
      if (IsVisible(byte) == visible)
        list.AddByte(ByteToVocabularyText(static_cast<uint8_t>(byte)));
  AddMerges(list);
  CHECK(list.full());  // the word list is long enough for kMaxSynthVocab

  vocabulary.token_types.assign(static_cast<size_t>(vocab_size), kNormalToken);
  vocabulary.bos = vocab_size - 2;
  vocabulary.eos = vocab_size - 1;
  vocabulary.tokens.Append("<|begin_of_text|>");
  vocabulary.tokens.Append("<|end_of_text|>");
  for (const int64_t id : {vocabulary.bos, vocabulary.eos})
    vocabulary.token_types[static_cast<size_t>(id)] = kControlToken;
  return vocabulary;
}

}  // namespace coldstream
