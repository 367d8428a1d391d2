#include "io/disk_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

class DiskCountersTest : public ::testing::Test {
 protected:
  DiskPaths Paths() const { return {dir_.Path("proc"), dir_.Path("sys")}; }

  TempDir dir_;
  const BlockDevice device_ = {.major = 259, .minor = 3};
};

TEST_F(DiskCountersTest, ADevicesBytesAreItsSectors) {
  dir_.Write(
      "sys/dev/block/259:3/stat",
      "   62460    12904 12967910    19667    13992    13810  8594944\n");
  EXPECT_THAT(DeviceReadBytes(device_, Paths()),
              IsOkAndHolds(uint64_t{12967910} * 512));
}

TEST_F(DiskCountersTest, AProcesssBytesAreTheFieldOfThatName) {
  dir_.Write("proc/self/io", "rchar: 6976\nsyscr: 10\nread_bytes: 4096\n");
  EXPECT_THAT(ProcessReadBytes(Paths()), IsOkAndHolds(uint64_t{4096}));
}

TEST_F(DiskCountersTest, WhatIsNotThereIsNotFound) {
  EXPECT_THAT(DeviceReadBytes(device_, Paths()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("259:3/stat")));
  EXPECT_THAT(ProcessReadBytes(Paths()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("self/io")));
}

TEST_F(DiskCountersTest, WhatIsNoNumberIsDataLoss) {
  dir_.Write("sys/dev/block/259:3/stat", "1 2\n");
  dir_.Write("proc/self/io", "rchar: 1\nread_bytes: -\n");
  EXPECT_THAT(DeviceReadBytes(device_, Paths()),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ProcessReadBytes(Paths()), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace coldstream
