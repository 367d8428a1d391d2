#include "tools/read_counts.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

TEST(ReadCountsTest, TheDisagreementIsOfTheLargestWithTheSmallest) {
  EXPECT_DOUBLE_EQ(*(ReadCounts{1000, 1000, 1500}.Disagreement()), 0.5);
  EXPECT_DOUBLE_EQ(*(ReadCounts{1000, 800, {}}.Disagreement()), 0.25);
  EXPECT_EQ(*(ReadCounts{7, 7, 7}.Disagreement()), 0);
  EXPECT_EQ(*(ReadCounts{0, 0, 0}.Disagreement()), 0);
}

TEST(ReadCountsTest, ThereIsNoneWithoutASecondCountOrAgainstZero) {
  EXPECT_FALSE((ReadCounts{1000, {}, {}}.Disagreement()));
  EXPECT_FALSE((ReadCounts{1000, 0, 0}.Disagreement()));
}

TEST(ReadCountsTest, ACountMissingOnOneSideIsMissingInTheDifference) {
  const ReadCounts read = ReadCounts{30, 50, {}} - ReadCounts{10, 20, 5};
  EXPECT_EQ(read.reader, 20u);
  EXPECT_EQ(read.process, 30u);
  EXPECT_FALSE(read.device);
  const ReadCounts sum = read + ReadCounts{1, {}, 1};
  EXPECT_EQ(sum.reader, 21u);
  EXPECT_FALSE(sum.process);
  EXPECT_FALSE(sum.device);
}

// A tree that stands for /proc and /sys, where the device of `file` has read
// `sectors`.
class ReadCounterTest : public ::testing::Test {
 protected:
  ReadCounterTest() {
    const std::string path = dir_.Write("model", "weights");
    file_ = File::Open(path, DirectMode::kOff).value();
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    device_ = info.st_dev;
  }
  std::string DeviceFolder() const {
    return "sys/dev/block/" + std::to_string(major(device_)) + ":" +
           std::to_string(minor(device_));
  }
  DiskPaths Paths() const { return {dir_.Path("proc"), dir_.Path("sys")}; }

  TempDir dir_;
  std::shared_ptr<File> file_;
  dev_t device_ = 0;
};

TEST_F(ReadCounterTest, ADeviceSharedByTwoFilesCountsOnce) {
  if (major(device_) == 0) GTEST_SKIP() << "the file has no block device";
  dir_.Write(DeviceFolder() + "/stat", "1 0 100 3");
  dir_.Write("proc/self/io", "rchar: 1\nread_bytes: 4096\n");
  const ReadCounter counter({file_, file_}, Paths());
  EXPECT_EQ(counter.disks().size(), 2u);
  const ReadCounts counts = counter.Now(17);
  EXPECT_EQ(counts.reader, 17u);
  EXPECT_EQ(counts.process, 4096u);
  EXPECT_EQ(counts.device, 51200u);
}

TEST_F(ReadCounterTest, WhatTheSystemDoesNotTellIsLeftOut) {
  const ReadCounter counter({file_}, Paths());
  const ReadCounts counts = counter.Now(17);
  EXPECT_FALSE(counts.process);
  EXPECT_FALSE(counts.device);
}

}  // namespace
}  // namespace coldstream
