#include "io/page_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "io/disk_identity.h"
#include "tests/support/pattern_file.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

constexpr uint64_t kSize = (uint64_t{8} << 20) + 123;

using Way = StatusOr<double> (*)(const File&);

class PageCacheTest : public ::testing::TestWithParam<Way> {
 protected:
  PageCacheTest() : file_(pattern_.Open(DirectMode::kOff)) {}

  StatusOr<double> Fraction() const { return GetParam()(*file_); }

  const PatternFile pattern_{kSize};
  const std::shared_ptr<File> file_;
};

TEST_P(PageCacheTest, AFileJustReadIsWarmAndADroppedOneIsCold) {
  if (IdentifyDisk(*file_).in_memory) GTEST_SKIP() << "always in memory";
  if (Fraction().status().code() == absl::StatusCode::kUnavailable)
    GTEST_SKIP() << Fraction().status();
  ASSERT_THAT(FillPageCache(*file_, nullptr), IsOk());
  EXPECT_THAT(Fraction(), IsOkAndHolds(1.0));
  ASSERT_THAT(DropFromPageCache(*file_), IsOk());
  // Asking twice: asking reads nothing.
  EXPECT_THAT(Fraction(), IsOkAndHolds(0.0));
  EXPECT_THAT(Fraction(), IsOkAndHolds(0.0));
}

TEST_P(PageCacheTest, HalfAFileIsHalfWarm) {
  if (IdentifyDisk(*file_).in_memory) GTEST_SKIP() << "always in memory";
  if (Fraction().status().code() == absl::StatusCode::kUnavailable)
    GTEST_SKIP() << Fraction().status();
  ASSERT_THAT(DropFromPageCache(*file_), IsOk());
  ASSERT_EQ(posix_fadvise(file_->buffered_fd(), 0, 0, POSIX_FADV_RANDOM), 0);
  std::vector<std::byte> bytes(kSize / 2);
  ASSERT_THAT(file_->ReadExactly(0, bytes), IsOk());
  EXPECT_NEAR(Fraction().value(), 0.5, 0.01);
}

TEST_P(PageCacheTest, FillingEndsWhenCancelled) {
  const std::atomic<bool> cancel{true};
  EXPECT_THAT(FillPageCache(*file_, &cancel),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(PageCacheTest, AnEmptyFileIsCold) {
  const PatternFile empty(0);
  EXPECT_THAT(GetParam()(*empty.Open(DirectMode::kOff)), IsOkAndHolds(0.0));
}

INSTANTIATE_TEST_SUITE_P(Ways, PageCacheTest,
                         ::testing::Values(&CachedFraction,
                                           &CachedFractionByCachestat,
                                           &CachedFractionByMincore));

}  // namespace
}  // namespace coldstream
