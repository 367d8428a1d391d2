#include "runtime/token_table.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

using std::string_literals::operator""s;

TEST(TokenTableTest, AnEmptyTableFindsNothing) {
  const TokenTable table;
  EXPECT_EQ(table.Find("a"), TokenTable::kNotFound);
  EXPECT_EQ(table.Find(""), TokenTable::kNotFound);
}

TEST(TokenTableTest, TextsKeepTheirBytesAndOrder) {
  TokenTable table;
  EXPECT_EQ(table.Add("one"), 0);
  EXPECT_EQ(table.Add(""), 1);
  EXPECT_EQ(table.Add("a\0b"s), 2);
  EXPECT_EQ(table.Text(0), "one");
  EXPECT_EQ(table.Text(1), "");
  EXPECT_EQ(table.Text(2), "a\0b"s);
}

TEST(TokenTableTest, OnlyIndexedTextsAreFoundAndTheFirstOfEqualOnesWins) {
  TokenTable table;
  const int32_t hidden = table.Add("hidden");
  const int32_t first = table.Add("same");
  const int32_t second = table.Add("same");
  EXPECT_TRUE(table.Index(first));
  EXPECT_FALSE(table.Index(second));
  EXPECT_TRUE(table.Index(first));  // again: still its own
  EXPECT_EQ(table.Find("same"), first);
  EXPECT_EQ(table.Find("hidden"), TokenTable::kNotFound);
  EXPECT_TRUE(table.Index(hidden));
  EXPECT_EQ(table.Find("hidden"), hidden);
}

TEST(TokenTableTest, GrowingKeepsEveryTextFindable) {
  TokenTable table;
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(table.Index(table.Add(absl::StrFormat("t%d", i))));
  }
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(table.Find(absl::StrFormat("t%d", i)), i);
  }
  EXPECT_EQ(table.Find("t5000"), TokenTable::kNotFound);
}

}  // namespace
}  // namespace coldstream
