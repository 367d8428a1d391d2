#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/command_run.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kTrace[] = R"({"traceEvents": [
    {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 9,
     "name": "</script><script>alert(1)</script>", "args": {"pass": 0}}]})";

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TraceCommandTest, WritesAPageBesideTheTrace) {
  const TempDir dir;
  for (const auto& [trace, page] :
       {std::pair("run.json", "run.html"), std::pair("run", "run.html"),
        std::pair("a.trace", "a.trace.html")}) {
    const CommandRun run = RunColdstream({"trace", dir.Write(trace, kTrace)});
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_THAT(run.error,
                AllOf(HasSubstr(dir.Path(page)), HasSubstr("1 passes")));
    EXPECT_THAT(Contents(dir.Path(page)), StartsWith("<!doctype html>"));
    std::filesystem::remove(dir.Path(page));
  }
}

TEST(TraceCommandTest, WritesToStdoutWhereAskedTo) {
  const TempDir dir;
  const std::string path = dir.Write("run.json", kTrace);
  const CommandRun run = RunColdstream({"trace", path, "-o", "-"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.error, IsEmpty());
  EXPECT_THAT(run.out,
              AllOf(StartsWith("<!doctype html>"), EndsWith("</html>\n")));
  EXPECT_FALSE(std::filesystem::exists(dir.Path("run.html")));
}

TEST(TraceCommandTest, ANameCannotEndTheScriptItIsIn) {
  const TempDir dir;
  const std::string path = dir.Write("<b>&.json", kTrace);
  const std::string page = RunColdstream({"trace", path, "-o", "-"}).out;
  EXPECT_THAT(page, HasSubstr(R"(\u003c/script>\u003cscript>alert(1))"));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;b&gt;&amp;.json"));
}

TEST(TraceCommandTest, WarnsOfEventsThatAreNotDrawn) {
  const TempDir dir;
  const std::string path =
      dir.Write("run.json", R"({"traceEvents": [{"ph": "B"}, {"ph": "i"}]})");
  const CommandRun run = RunColdstream({"trace", path, "-o", "-"});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.error, HasSubstr("warning: "));
  EXPECT_THAT(run.error, HasSubstr("2 events are neither"));
}

TEST(TraceCommandTest, ABadFileIsOneLineAndNoPage) {
  const TempDir dir;
  const std::string& folder = dir.path();
  for (const std::string& path :
       {dir.Write("gguf.json", "GGUF"), dir.Write("other.json", "{}"),
        dir.Path("none.json"), folder}) {
    const CommandRun run = RunColdstream({"trace", path});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.error, AllOf(HasSubstr("error: "), HasSubstr(path)));
    EXPECT_EQ(std::ranges::count(run.error, '\n'), 1) << run.error;
  }
  EXPECT_FALSE(std::filesystem::exists(dir.Path("gguf.html")));
  EXPECT_FALSE(std::filesystem::exists(dir.Path("other.html")));
}

TEST(TraceCommandTest, DoesNotReplaceTheTrace) {
  const TempDir dir;
  const std::string path = dir.Write("run.html", kTrace);
  const CommandRun run = RunColdstream({"trace", path, "-o", path});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(Contents(path), kTrace);
}

}  // namespace
}  // namespace coldstream
