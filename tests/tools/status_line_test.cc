#include "tools/status_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/pseudo_terminal.h"

namespace coldstream {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kErase[] = "\r\x1b[K";

class StatusLineTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("TERM", "xterm", 1); }

  StatusLine::Options OptionsFor(int descriptor) {
    StatusLine::Options options;
    options.descriptor = descriptor;
    options.stats = [this] {
      EngineStats stats;
      stats.passes = passes_++;
      stats.units = stats.passes;
      return stats;
    };
    options.delay = std::chrono::milliseconds(0);
    options.interval = std::chrono::milliseconds(1);
    return options;
  }

  std::atomic<int64_t> passes_{0};
};

TEST_F(StatusLineTest, ALineIsRewrittenInPlaceAndErasedAtTheEnd) {
  PseudoTerminal terminal(80);
  std::string text;
  {
    StatusLine status(OptionsFor(terminal.descriptor()));
    status.Begin({.generated_tokens = 1'000'000});
    while (text.find("generated 5/") == std::string::npos)
      text += terminal.Read();
  }
  text += terminal.Read(0);
  EXPECT_THAT(text, StartsWith("\rgenerated "));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(text, EndsWith(kErase));
}

TEST_F(StatusLineTest, NothingIsWrittenOnceItIsHidden) {
  PseudoTerminal terminal(80);
  StatusLine status(OptionsFor(terminal.descriptor()));
  status.Begin({.generated_tokens = 1'000'000});
  (void)terminal.Read();
  status.Hide();
  (void)terminal.Read(0);
  const int64_t passes = passes_;
  usleep(20'000);
  EXPECT_THAT(terminal.Read(0), IsEmpty());
  EXPECT_EQ(passes_, passes);
  status.Begin({.label = "again", .generated_tokens = 1'000'000});
  EXPECT_THAT(terminal.Read(), HasSubstr("again generated"));
}

TEST_F(StatusLineTest, TheLineIsNarrowerThanTheTerminal) {
  PseudoTerminal terminal(12);
  StatusLine status(OptionsFor(terminal.descriptor()));
  status.Begin({.generated_tokens = 1'000'000});
  // All there is room for, and the last column stays empty.
  EXPECT_THAT(terminal.Read(), MatchesRegex("\rgenerated [0-9]\x1b\\[K[^\n]*"));
}

TEST_F(StatusLineTest, AShortCommandHasNoLine) {
  PseudoTerminal terminal(80);
  {
    StatusLine::Options options = OptionsFor(terminal.descriptor());
    options.delay = std::chrono::hours(1);
    StatusLine status(options);
    status.Begin({.generated_tokens = 10});
    status.Hide();
  }
  EXPECT_THAT(terminal.Read(0), IsEmpty());
}

TEST_F(StatusLineTest, APipeGetsNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK), 0);
  {
    StatusLine status(OptionsFor(ends[1]));
    status.Begin({.generated_tokens = 10});
    usleep(20'000);
    status.Hide();
  }
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), -1);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(StatusLineTest, ATerminalThatCannotMoveItsCursorGetsNothing) {
  PseudoTerminal terminal(80);
  EXPECT_TRUE(CanShowStatus(terminal.descriptor()));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(CanShowStatus(terminal.descriptor()));
  unsetenv("TERM");
  EXPECT_FALSE(CanShowStatus(terminal.descriptor()));
}

}  // namespace
}  // namespace coldstream
