// Small vocabularies for tests, as the metadata of a checkpoint.
//
//   SmallBpe bpe("gpt-2");
//   bpe.Merge("a", "b");                       // token "ab"
//   const TokenId stop = bpe.Add("<|stop|>", TokenType::kControl);
//   auto tokenizer = Tokenizer::Create(bpe.Build());
#ifndef COLDSTREAM_TESTS_RUNTIME_SMALL_VOCABULARY_H_
#define COLDSTREAM_TESTS_RUNTIME_SMALL_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "io/metadata.h"
#include "runtime/byte_level.h"
#include "runtime/vocabulary.h"

namespace coldstream {

// The 256 bytes first: the id of a byte is its value.
class SmallBpe {
 public:
  explicit SmallBpe(std::string_view pre) : pre_(pre) {
    for (int byte = 0; byte < 256; ++byte) {
      AddBytes(std::string(1, static_cast<char>(byte)));
    }
  }

  // A token spelled in the file's own letters.
  TokenId Add(std::string_view spelled, TokenType type) {
    tokens_.Append(spelled);
    types_.push_back(static_cast<int64_t>(type));
    return static_cast<TokenId>(tokens_.size() - 1);
  }
  TokenId AddBytes(std::string_view bytes) {
    return Add(ToByteLevel(bytes), TokenType::kNormal);
  }
  // A merge of two byte strings, without a token.
  void OnlyMerge(std::string_view left, std::string_view right) {
    merges_.Append(ToByteLevel(left) + " " + ToByteLevel(right));
  }
  TokenId Merge(std::string_view left, std::string_view right) {
    OnlyMerge(left, right);
    return AddBytes(std::string(left).append(right));
  }
  void Set(std::string key, MetadataValue value) {
    extra_.Insert(std::move(key), std::move(value));
  }

  Metadata Build() const {
    Metadata m = extra_;
    m.Insert("tokenizer.ggml.model", std::string("gpt2"));
    if (!pre_.empty()) m.Insert("tokenizer.ggml.pre", pre_);
    m.Insert("tokenizer.ggml.tokens", tokens_);
    m.Insert("tokenizer.ggml.token_type", types_);
    m.Insert("tokenizer.ggml.merges", merges_);
    return m;
  }

 private:
  std::string pre_;
  StringArray tokens_;
  StringArray merges_;
  IntArray types_;
  Metadata extra_;
};

// <unk> 0, <s> 1, </s> 2, then, with byte fallback, the bytes from 3 on.
class SmallSpm {
 public:
  static constexpr TokenId kUnknown = 0, kBos = 1, kEos = 2, kFirstByte = 3;

  explicit SmallSpm(bool byte_fallback = true) {
    Add("<unk>", 0, TokenType::kUnknown);
    Add("<s>", 0, TokenType::kControl);
    Add("</s>", 0, TokenType::kControl);
    for (int byte = 0; byte_fallback && byte < 256; ++byte) {
      Add(absl::StrFormat("<0x%02X>", byte), 0, TokenType::kByte);
    }
  }

  TokenId Add(std::string_view spelled, float score,
              TokenType type = TokenType::kNormal) {
    tokens_.Append(spelled);
    scores_.push_back(score);
    types_.push_back(static_cast<int64_t>(type));
    return static_cast<TokenId>(tokens_.size() - 1);
  }
  void Set(std::string key, MetadataValue value) {
    extra_.Insert(std::move(key), std::move(value));
  }
  void LeaveOutTypes() { with_types_ = false; }

  Metadata Build() const {
    Metadata m = extra_;
    m.Insert("tokenizer.ggml.model", std::string("llama"));
    m.Insert("tokenizer.ggml.tokens", tokens_);
    m.Insert("tokenizer.ggml.scores", scores_);
    if (with_types_) m.Insert("tokenizer.ggml.token_type", types_);
    return m;
  }

 private:
  StringArray tokens_;
  FloatArray scores_;
  IntArray types_;
  Metadata extra_;
  bool with_types_ = true;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_RUNTIME_SMALL_VOCABULARY_H_
