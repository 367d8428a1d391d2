#include "graphs/kv_block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kTokens = 4;  // of a block
using Tokens = std::vector<int32_t>;

// A sequence that was computed and published.
std::vector<int> Computed(KvBlockPool* pool, const Tokens& tokens) {
  std::vector<int> blocks;
  EXPECT_THAT(pool->Reserve(&blocks, pool->BlocksFor(std::ssize(tokens))),
              IsOk());
  pool->Publish(tokens, std::ssize(tokens), blocks);
  return blocks;
}

TEST(KvBlockPoolTest, BlocksComeAndGo) {
  KvBlockPool pool(3, kTokens);
  std::vector<int> a, b;
  ASSERT_THAT(pool.Reserve(&a, 2), IsOk());
  ASSERT_THAT(pool.Reserve(&a, 1), IsOk());  // has them
  EXPECT_EQ(a.size(), 2u);
  EXPECT_THAT(pool.Reserve(&b, 2),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("8 more tokens wanted, room for 4")));
  EXPECT_THAT(b, IsEmpty());
  pool.Release(&a);
  EXPECT_THAT(a, IsEmpty());
  EXPECT_EQ(pool.free_count(), 3);
  EXPECT_THAT(pool.Reserve(&b, 3), IsOk());
}

TEST(KvBlockPoolTest, FullBlocksOfACommonBeginningAreShared) {
  KvBlockPool pool(8, kTokens);
  const auto first = Computed(&pool, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  std::vector<int> second;
  const Tokens other = {1, 2, 3, 4, 5, 6, 7, 0, 9, 9};
  EXPECT_EQ(pool.Match(other, std::ssize(other), &second), 4);
  EXPECT_THAT(second, ElementsAre(first[0]));
  EXPECT_EQ(pool.free_count(), 8 - 3);
}

// At least one token is to be evaluated: the caller says how many may match.
TEST(KvBlockPoolTest, NoMoreThanAskedForIsMatched) {
  KvBlockPool pool(8, kTokens);
  const Tokens tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  Computed(&pool, tokens);
  std::vector<int> blocks;
  EXPECT_EQ(pool.Match(tokens, 7, &blocks), 4);
}

TEST(KvBlockPoolTest, TheSameTokensAfterOthersAreAnotherBlock) {
  KvBlockPool pool(8, kTokens);
  Computed(&pool, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<int> blocks;
  EXPECT_EQ(pool.Match(Tokens{5, 6, 7, 8}, 4, &blocks), 0);
  EXPECT_THAT(blocks, IsEmpty());
}

TEST(KvBlockPoolTest, WhatNobodyUsesIsFoundUntilItIsTaken) {
  KvBlockPool pool(3, kTokens);
  const Tokens tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  auto first = Computed(&pool, tokens);
  pool.Release(&first);
  std::vector<int> again;
  EXPECT_EQ(pool.Match(tokens, 8, &again), 8);
  pool.Release(&again);
  // Two of three are taken: the one never used, and the sequence's last.
  std::vector<int> other;
  ASSERT_THAT(pool.Reserve(&other, 2), IsOk());
  EXPECT_EQ(pool.Match(tokens, 8, &again), 4);
}

// Its second block was published behind a first one that is gone.
TEST(KvBlockPoolTest, NothingIsFoundBehindABlockThatWasTaken) {
  KvBlockPool pool(2, kTokens);
  auto first = Computed(&pool, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<int> head = {first[0]}, tail = {first[1]};
  pool.Release(&head);  // the head is free first
  std::vector<int> other;
  ASSERT_THAT(pool.Reserve(&other, 1), IsOk());
  pool.Publish(Tokens{1, 2, 3, 4}, 4, other);
  std::vector<int> match;
  EXPECT_EQ(pool.Match(Tokens{1, 2, 3, 4, 5, 6, 7, 8}, 8, &match), 4);
  EXPECT_EQ(match, other);
}

// Random sequences against a model that remembers what each block holds.
TEST(KvBlockPoolTest, AMatchAlwaysHoldsTheTokensAskedFor) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    KvBlockPool pool(12, kTokens);
    std::map<int, Tokens> holds;  // by block: all tokens up to its end
    struct Sequence {
      Tokens tokens;
      std::vector<int> blocks;
    };
    std::vector<Sequence> running;
    for (int step = 0; step < 200; ++step) {
      if (random() % 3 == 0 && !running.empty()) {
        const size_t i = random() % running.size();
        pool.Release(&running[i].blocks);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      Sequence s;
      for (size_t i = 0, n = 1 + random() % 20; i < n; ++i)
        s.tokens.push_back(static_cast<int32_t>(random() % 2));
      const int64_t matched =
          pool.Match(s.tokens, std::ssize(s.tokens) - 1, &s.blocks);
      ASSERT_LT(matched, std::ssize(s.tokens));
      for (int64_t end = kTokens; end <= matched; end += kTokens) {
        const int block = s.blocks[static_cast<size_t>(end / kTokens) - 1];
        ASSERT_EQ(holds[block],
                  Tokens(s.tokens.begin(), s.tokens.begin() + end));
      }
      if (!pool.Reserve(&s.blocks, pool.BlocksFor(std::ssize(s.tokens))).ok()) {
        pool.Release(&s.blocks);
        continue;
      }
      for (size_t i = static_cast<size_t>(matched / kTokens);
           i < s.blocks.size(); ++i) {
        const size_t end = std::min(s.tokens.size(), (i + 1) * kTokens);
        holds[s.blocks[i]] =
            Tokens(s.tokens.begin(),
                   s.tokens.begin() + static_cast<std::ptrdiff_t>(end));
      }
      pool.Publish(s.tokens, std::ssize(s.tokens), s.blocks);
      running.push_back(std::move(s));
      std::set<int> used;
      for (const Sequence& each : running)
        used.insert(each.blocks.begin(), each.blocks.end());
      ASSERT_EQ(pool.free_count(), 12 - std::ssize(used));
    }
  }
}

}  // namespace
}  // namespace coldstream
