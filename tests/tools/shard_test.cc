#include "tools/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

TEST(ShardTest, EveryLineIsInExactlyOneShard) {
  for (int64_t line = 1; line < 100; ++line) {
    int64_t shards = 0;
    for (int64_t i = 1; i <= 7; ++i) shards += Shard{i, 7}.Has(line) ? 1 : 0;
    EXPECT_EQ(shards, 1) << line;
    EXPECT_TRUE(Shard{}.Has(line));
  }
  EXPECT_TRUE((Shard{2, 3}.Has(5)));
}

TEST(ShardTest, IsWrittenAsPlaceAndCount) {
  const auto shard = ParseShard("2/8");
  ASSERT_THAT(shard, IsOk());
  EXPECT_EQ(shard->index, 2);
  EXPECT_EQ(shard->count, 8);
  for (const char* bad : {"", "1", "0/4", "5/4", "-1/4", "1/0", "a/b", "1/4x",
                          " 1/4", "1/ 4", "/", "1/2000000", "1/4/2"}) {
    EXPECT_THAT(ParseShard(bad), StatusIs(absl::StatusCode::kInvalidArgument,
                                          ::testing::HasSubstr("I/N")))
        << bad;
  }
}

}  // namespace
}  // namespace coldstream
