// Megabyte inputs on a small stack: every family and every rule, with a
// generated vocabulary always and with the real ones of COLDSTREAM_VOCABS (see
// tests/golden/tokenizers/make_vocabs.py) where that is set.
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "runtime/tokenizer.h"
#include "tests/runtime/small_vocabulary.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

// Sanitized code runs 20 times slower and its frames have red zones.
constexpr size_t kTextBytes = size_t{kSanitized ? 64 : 1024} << 10;
constexpr size_t kStackBytes = size_t{kSanitized ? 2048 : 256} << 10;

// Runs `work` on a thread with a small stack.
void OnSmallStack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run,
                           const_cast<std::function<void()>*>(&work)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string Repeated(std::string_view unit) {
  std::string text;
  text.reserve(kTextBytes + unit.size());
  while (text.size() < kTextBytes) text += unit;
  return text;
}

struct Run {
  const char* name;
  std::string text;
};

std::vector<Run> Runs() {
  return {{"a", Repeated("a")},
          {"spaces", Repeated(" ")},
          {"newlines", Repeated("\n")},
          {"digits", Repeated("7")},
          {"emoji", Repeated("\U0001F600")},
          {"spaces then a letter", Repeated(" ") + "x"},
          {"space newline", Repeated(" \n")},
          {"marks", Repeated("\u0301")},
          {"Hangul", Repeated("\uAC00")},
          {"signs", Repeated("<")},
          {"apostrophes", Repeated("'")},
          {"invalid", Repeated("\xFF")},
          {"cut characters", Repeated("\xE2\x82")},
          {"NUL", std::string(kTextBytes, '\0')},
          {"words", Repeated("some words, 12 of them;\n")}};
}

// Every byte of `text` has a token: SmolLM2's vocabulary lacks some.
bool HasBytesOf(const Tokenizer& tokenizer, const std::string& text) {
  for (const char byte : std::set<char>(text.begin(), text.end())) {
    const std::string alone(1, byte);
    if (tokenizer.DecodeAll(tokenizer.Encode(alone, SpecialTokens::kAsText)) !=
        alone) {
      return false;
    }
  }
  return true;
}

// A test asserts no time (the machine may be busy): it reports the slowest run.
void ExpectAllRunsRoundTrip(const Tokenizer& tokenizer) {
  double slowest = 0;
  const char* slowest_name = "";
  int runs = 0;
  for (const Run& run : Runs()) {
    if (!HasBytesOf(tokenizer, run.text)) continue;
    ++runs;
    bool same = false;
    size_t tokens = 0;
    std::chrono::duration<double> took{};
    OnSmallStack([&] {
      const auto start = std::chrono::steady_clock::now();
      const auto ids = tokenizer.Encode(run.text, SpecialTokens::kParse);
      took = std::chrono::steady_clock::now() - start;
      tokens = ids.size();
      same = tokenizer.DecodeAll(ids) == run.text;
    });
    EXPECT_TRUE(same) << tokenizer.description() << ": " << run.name;
    EXPECT_GT(tokens, 0u);
    if (took.count() > slowest) {
      slowest = took.count();
      slowest_name = run.name;
    }
  }
  EXPECT_GE(runs, 10);
  std::cout << tokenizer.description() << ": slowest run: " << slowest_name
            << ", " << slowest << " s\n";
}

std::unique_ptr<Tokenizer> Make(const Metadata& metadata) {
  auto tokenizer = Tokenizer::Create(metadata);
  EXPECT_THAT(tokenizer, IsOk());
  return *std::move(tokenizer);
}

class BpeStressTest : public testing::TestWithParam<const char*> {};

TEST_P(BpeStressTest, MegabyteRunsRoundTripOnASmallStack) {
  SmallBpe bpe(GetParam());
  for (std::string unit : {"a", " ", "\n", "7", "<", "\xFF"}) {
    for (int i = 0; i < 6; ++i, unit += unit) bpe.Merge(unit, unit);
  }
  bpe.Merge("\xF0", "\x9F");
  bpe.Merge("\xF0\x9F", "\x98");
  bpe.Merge("\xF0\x9F\x98", "\x80");
  bpe.Merge("\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80");
  bpe.Add("<|end|>", TokenType::kControl);
  bpe.Add("<<", TokenType::kUserDefined);
  ExpectAllRunsRoundTrip(*Make(bpe.Build()));
}

INSTANTIATE_TEST_SUITE_P(Rules, BpeStressTest,
                         testing::Values("llama-bpe", "qwen2", "command-r",
                                         "smollm", "gpt-2", "default"),
                         [](const testing::TestParamInfo<const char*>& rule) {
                           std::string name = rule.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(SpmStressTest, MegabyteRunsRoundTripOnASmallStack) {
  SmallSpm spm;
  for (std::string unit : {"a", "\u2581", "\n", "7", "<", "\U0001F600"}) {
    for (int i = 0; i < 6; ++i, unit += unit) {
      spm.Add(unit, static_cast<float>(-i));
    }
  }
  ExpectAllRunsRoundTrip(*Make(spm.Build()));
}

TEST(RealVocabularyStressTest, MegabyteRunsRoundTripOnASmallStack) {
  const char* folder = std::getenv("COLDSTREAM_VOCABS");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "COLDSTREAM_VOCABS names no folder; see "
                    "tests/golden/tokenizers/make_vocabs.py";
  }
  int vocabularies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    auto checkpoint = Checkpoint::Open(entry.path());
    ASSERT_THAT(checkpoint, IsOk());
    SCOPED_TRACE(entry.path());
    const auto tokenizer = Make(checkpoint->metadata());
    ExpectAllRunsRoundTrip(*tokenizer);
    ++vocabularies;
  }
  EXPECT_GT(vocabularies, 0);
}

}  // namespace
}  // namespace coldstream
