#include "scheduler/upload_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/deferred_device.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr UploadProbeOptions kShort = {.seconds = 0, .copy_bytes = 1 << 16};

TEST(UploadProbeTest, TheRateIsByTheDevicesClock) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto device = CreateDeferredDevice({.seed = seed});
    const auto probe = ProbeUpload(device.get(), kShort);
    ASSERT_THAT(probe.status(), IsOk());
    EXPECT_EQ(probe->bytes, 3u * 8u * kShort.copy_bytes);
    // A copy is two steps of a microsecond each.
    EXPECT_LE(probe->bytes_per_second, kShort.copy_bytes / 1e-6) << seed;
    EXPECT_GT(probe->bytes_per_second, 0) << seed;
    EXPECT_THAT(probe->doubt, IsEmpty());
  }
}

TEST(UploadProbeTest, MemoryThatIsNotPinnedIsADoubt) {
  const auto device = CreateDeferredDevice({.faults = {.pinned_bytes = 0}});
  const auto probe = ProbeUpload(device.get(), kShort);
  ASSERT_THAT(probe.status(), IsOk());
  EXPECT_THAT(probe->doubt, Not(IsEmpty()));
}

TEST(UploadProbeTest, AFailedCopyIsTheProbesError) {
  const auto device = CreateDeferredDevice({.faults = {.fail_copies_from = 5}});
  EXPECT_THAT(ProbeUpload(device.get(), kShort).status(),
              StatusIs(absl::StatusCode::kInternal));
}

TEST(UploadProbeTest, ADeviceThatIsFullIsSaid) {
  const auto device = CreateDeferredDevice({.memory_bytes = 1 << 16});
  EXPECT_THAT(ProbeUpload(device.get(), kShort).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("upload probe")));
}

}  // namespace
}  // namespace coldstream
