#include "tools/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Kept {
  std::string text;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool terminated = false;

  friend bool operator==(const Kept&, const Kept&) = default;
};

std::vector<Kept> ReadAll(const std::string& path, size_t most_bytes) {
  std::vector<Kept> lines;
  const auto reader = LineReader::Open(path, {.most_bytes = most_bytes});
  EXPECT_THAT(reader, IsOk());
  LineReader::Line line;
  while (true) {
    const auto more = (*reader)->Next(&line);
    EXPECT_THAT(more, IsOk());
    if (!more.ok() || !*more) return lines;
    EXPECT_EQ(line.number, std::ssize(lines) + 1);
    lines.push_back(
        {std::string(line.text), line.offset, line.bytes, line.terminated});
  }
}

class LineReaderTest : public ::testing::Test {
 protected:
  std::vector<std::string> TextsOf(const std::string& contents,
                                   size_t most_bytes = 100) {
    std::vector<std::string> texts;
    for (const Kept& line : ReadAll(dir_.Write("f", contents), most_bytes))
      texts.push_back(line.text);
    return texts;
  }
  TempDir dir_;
};

TEST_F(LineReaderTest, LinesEndWithOrWithoutACarriageReturnOrWithTheFile) {
  EXPECT_THAT(TextsOf("a\nb\r\nc"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(TextsOf("a\r\r\n\r\n\n\r"), ElementsAre("a\r", "", "", ""));
  EXPECT_THAT(TextsOf(""), IsEmpty());
  EXPECT_THAT(TextsOf("\n"), ElementsAre(""));
}

TEST_F(LineReaderTest, OffsetsAndLengthsAreThoseOfTheFile) {
  EXPECT_THAT(ReadAll(dir_.Write("f", "ab\r\n\nc"), 100),
              ElementsAre(Kept{"ab", 0, 2, true}, Kept{"", 4, 0, true},
                          Kept{"c", 5, 1, false}));
}

TEST_F(LineReaderTest, OfALineOverTheLimitTheBeginningIsKept) {
  EXPECT_THAT(ReadAll(dir_.Write("f", "abcd\nabcde\nabcd\r\nabcde\r\nx\n"), 4),
              ElementsAre(Kept{"abcd", 0, 4, true}, Kept{"abcd", 5, 5, true},
                          Kept{"abcd", 11, 4, true}, Kept{"abcd", 17, 5, true},
                          Kept{"x", 24, 1, true}));
}

TEST_F(LineReaderTest, AHugeLineTakesNoMemory) {
  const std::string path = dir_.Write("f", "a\n");
  constexpr uint64_t kHuge = uint64_t{1} << 30;  // a hole of zeros
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(2 + kHuge)), 0);
  std::ofstream(path, std::ios::app | std::ios::binary) << "\nb\n";
  const auto reader = *LineReader::Open(path, {.most_bytes = 1000});
  LineReader::Line line;
  std::vector<uint64_t> bytes;
  while (*reader->Next(&line)) {
    EXPECT_LE(line.text.size(), 1000u);
    bytes.push_back(line.bytes);
  }
  EXPECT_THAT(bytes, ElementsAre(1, kHuge, 1));
  EXPECT_EQ(reader->position(), reader->size());
}

// Against the obvious way to do it, with lines across the ends of chunks.
TEST_F(LineReaderTest, RandomBytesAreCutAsTheyShouldBe) {
  std::mt19937 random(4);
  for (int run = 0; run < 30; ++run) {
    const size_t size = run < 25 ? random() % 300 : 600000 + random() % 1000;
    std::string contents(size, ' ');
    for (char& c : contents) c = "ab\r\n"[random() % (run % 2 ? 4 : 3)];
    if (run % 2 == 0 && size > 0) contents[random() % size] = '\n';
    const size_t most = random() % 8;
    std::vector<Kept> expected;
    for (size_t begin = 0; begin < size;) {
      const size_t end = std::min(contents.find('\n', begin), size);
      std::string text = contents.substr(begin, end - begin);
      if (text.ends_with('\r')) text.pop_back();
      expected.push_back(
          {text.substr(0, most), begin, text.size(), end < size});
      begin = end + 1;
    }
    ASSERT_EQ(ReadAll(dir_.Write("f", contents), most), expected) << run;
  }
}

TEST_F(LineReaderTest, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(
      LineReader::Open(dir_.Path("none"), {}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_.Path("none"))));
  EXPECT_THAT(
      LineReader::Open(dir_.path(), {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("directory")));
}

TEST_F(LineReaderTest, APipeIsReadLineByLineAsTheyCome) {
  const std::string path = dir_.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream pipe(path);
    pipe << "one\ntw";
    pipe.flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pipe << "o\n";
  });
  EXPECT_EQ(ReadAll(path, 100).size(), 2u);
  writer.join();
}

TEST_F(LineReaderTest, ASignalEndsAReadThatWaitsIfTheFlagIsSet) {
  const std::string path = dir_.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  struct sigaction before = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<bool> cancel{false};
  std::atomic<bool> ended{false};
  const pthread_t self = pthread_self();
  std::thread other([&] {
    const std::ofstream keeps_it_open(path);
    cancel = true;
    while (!ended) {
      pthread_kill(self, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  // A signal may end the opening, too.
  auto reader = LineReader::Open(path, {.cancel = &cancel});
  while (!reader.ok()) reader = LineReader::Open(path, {.cancel = &cancel});
  LineReader::Line line;
  EXPECT_THAT((*reader)->Next(&line), StatusIs(absl::StatusCode::kCancelled));
  ended = true;
  other.join();
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace coldstream
