// Ids equal the reference tokenizers' on the texts of tests/golden/tokenizers.
//
// The texts and recorded ids are in the repository, the vocabularies are not:
// tests/golden/tokenizers/make_vocabs.py FOLDER makes them, and
// COLDSTREAM_VOCABS=FOLDER lets these tests find them. Likewise
// COLDSTREAM_TOKENIZER_VECTORS names a folder of NAME.gguf with NAME.gguf.inp
// and NAME.gguf.out as public engines publish them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "runtime/tokenizer.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGolden = COLDSTREAM_TEST_DATA "/golden/tokenizers/";

std::vector<std::string> Lines(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> Texts(const fs::path& path) {
  std::vector<std::string> texts;
  for (const std::string& line : Lines(path)) {
    texts.push_back(nlohmann::json::parse(line).get<std::string>());
  }
  return texts;
}

std::vector<TokenId> Ids(const std::string& line) {
  std::istringstream in(line);
  std::vector<TokenId> ids;
  for (TokenId id; in >> id;) ids.push_back(id);
  return ids;
}

std::unique_ptr<Tokenizer> Load(const fs::path& path) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_THAT(checkpoint, IsOk());
  if (!checkpoint.ok()) return nullptr;
  auto tokenizer = Tokenizer::Create(checkpoint->metadata());
  EXPECT_THAT(tokenizer, IsOk()) << path;
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

void ExpectRecordedIds(const Tokenizer& tokenizer,
                       const std::vector<std::string>& texts,
                       const std::vector<std::string>& recorded,
                       SpecialTokens special) {
  ASSERT_EQ(texts.size(), recorded.size());
  size_t wrong = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto expected = Ids(recorded[i]);
    const auto got = tokenizer.Encode(texts[i], special);
    if (got == expected || ++wrong > 5) continue;
    ADD_FAILURE() << "text " << i << ": " << testing::PrintToString(texts[i])
                  << "\n  expected " << testing::PrintToString(expected)
                  << "\n  got      " << testing::PrintToString(got);
  }
  EXPECT_EQ(wrong, 0u) << "of " << texts.size() << " texts";
}

struct Golden {
  const char* name;
  const char* description;
  bool has_special;  // the reference knows control tokens in text
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

class TokenizerGoldenTest : public testing::TestWithParam<Golden> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("COLDSTREAM_VOCABS");
    const fs::path path = fs::path(folder == nullptr ? "" : folder) /
                          (std::string(GetParam().name) + ".gguf");
    if (folder == nullptr || !fs::exists(path)) {
      GTEST_SKIP() << "no " << GetParam().name
                   << ".gguf in the folder COLDSTREAM_VOCABS names; "
                      "tests/golden/tokenizers/make_vocabs.py FOLDER makes it";
    }
    tokenizer_ = Load(path);
    ASSERT_NE(tokenizer_, nullptr);
    EXPECT_EQ(tokenizer_->description(), GetParam().description);
  }

  std::string Recorded(const char* ending) const {
    return std::string(kGolden) + GetParam().name + ending;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(TokenizerGoldenTest, IdsEqualTheReferenceOnEveryText) {
  const auto texts = Texts(std::string(kGolden) + "texts.jsonl");
  EXPECT_GE(texts.size(), 2000u);
  ExpectRecordedIds(*tokenizer_, texts, Lines(Recorded(".ids")),
                    SpecialTokens::kAsText);
}

TEST_P(TokenizerGoldenTest, IdsEqualTheReferenceWhereControlTokensAreParsed) {
  if (!GetParam().has_special) {
    GTEST_SKIP() << "the reference knows no control tokens in text";
  }
  ExpectRecordedIds(*tokenizer_,
                    Texts(std::string(kGolden) + "special_texts.jsonl"),
                    Lines(Recorded(".special.ids")), SpecialTokens::kParse);
}

TEST_P(TokenizerGoldenTest, TextNeverYieldsControlTokensUnasked) {
  for (const std::string& text :
       Texts(std::string(kGolden) + "special_texts.jsonl")) {
    for (const TokenId id : tokenizer_->Encode(text, SpecialTokens::kAsText)) {
      ASSERT_FALSE(tokenizer_->Decode(id).empty()) << id << " in " << text;
      ASSERT_FALSE(tokenizer_->IsEndOfGeneration(id)) << id << " in " << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TokenizerGoldenTest,
                         testing::Values(Golden{"smollm2", "gpt2/smollm", true},
                                         Golden{"llama3", "gpt2/llama-bpe",
                                                true},
                                         Golden{"qwen", "gpt2/qwen2", true},
                                         Golden{"mistral", "llama", false}),
                         [](const testing::TestParamInfo<Golden>& vocabulary) {
                           return std::string(vocabulary.param.name);
                         });

TEST(TokenizerVectorsTest, IdsEqualPublishedVectors) {
  const char* folder = std::getenv("COLDSTREAM_TOKENIZER_VECTORS");
  if (folder == nullptr || !fs::is_directory(folder)) {
    GTEST_SKIP() << "COLDSTREAM_TOKENIZER_VECTORS names no folder";
  }
  int vocabularies = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path();
    if (entry.path().extension() != ".gguf" || !fs::exists(path + ".inp")) {
      continue;
    }
    auto checkpoint = Checkpoint::Open(path);
    ASSERT_THAT(checkpoint, IsOk());
    auto tokenizer = Tokenizer::Create(checkpoint->metadata());
    if (!tokenizer.ok() &&
        MessageOf(tokenizer.status()).find("--pre") != std::string::npos) {
      continue;  // a rule that is not ours
    }
    ASSERT_THAT(tokenizer, IsOk()) << path;
    std::ifstream file(path + ".inp");
    std::stringstream all;
    all << file.rdbuf();
    const std::string separator = "\n__ggml_vocab_test__\n";
    std::vector<std::string> texts;
    std::string rest = all.str();
    for (size_t at; (at = rest.find(separator)) != std::string::npos;) {
      texts.push_back(rest.substr(0, at));
      rest.erase(0, at + separator.size());
    }
    if (!rest.empty()) texts.push_back(rest);
    std::vector<std::string> recorded = Lines(path + ".out");
    recorded.resize(texts.size());
    SCOPED_TRACE(path);
    ExpectRecordedIds(**tokenizer, texts, recorded, SpecialTokens::kAsText);
    ++vocabularies;
  }
  EXPECT_GT(vocabularies, 0);
}

}  // namespace
}  // namespace coldstream
