#include "runtime/sequence_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "kernels/ops.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Matcher;

SequenceState Sequence(std::vector<TokenId> prompt) {
  SequenceState sequence;
  sequence.rows_from = std::ssize(prompt) - 1;
  sequence.tokens = std::move(prompt);
  return sequence;
}

SequenceState OfLength(int64_t length, TokenId token) {
  return Sequence(std::vector<TokenId>(static_cast<size_t>(length), token));
}

Matcher<SequenceSlice> Slice(SequenceState* sequence, int64_t begin,
                             int64_t count, int64_t rows) {
  return AllOf(Field(&SequenceSlice::sequence, sequence),
               Field(&SequenceSlice::begin, begin),
               Field(&SequenceSlice::count, count),
               Field(&SequenceSlice::rows, rows));
}

KvBlockPool Pool(int64_t blocks) { return {blocks, kKvBlockTokens}; }

TEST(SequenceSchedulerTest, APromptGoesInChunksAndWantsItsLastLogits) {
  KvBlockPool pool = Pool(4);
  SequenceScheduler scheduler(&pool,
                              {.tokens = 8, .logit_rows = 4, .sequences = 4});
  SequenceState a = OfLength(13, 1);
  scheduler.Add(&a);
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&a, 0, 8, 0)));
  scheduler.Finish();
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&a, 8, 5, 1)));
  scheduler.Finish();
  a.tokens.push_back(7);
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&a, 13, 1, 1)));
}

TEST(SequenceSchedulerTest, GenerationAndPromptsShareAPass) {
  KvBlockPool pool = Pool(8);
  SequenceScheduler scheduler(&pool,
                              {.tokens = 8, .logit_rows = 4, .sequences = 4});
  SequenceState a = OfLength(3, 1), b = OfLength(20, 2), c = OfLength(4, 3);
  scheduler.Add(&a);
  scheduler.Add(&b);
  EXPECT_THAT(scheduler.Compose(),
              ElementsAre(Slice(&a, 0, 3, 1), Slice(&b, 0, 5, 0)));
  scheduler.Finish();
  a.tokens.push_back(7);
  scheduler.Add(&c);
  EXPECT_THAT(scheduler.Compose(),
              ElementsAre(Slice(&a, 3, 1, 1), Slice(&b, 5, 7, 0)));
  scheduler.Finish();
  scheduler.Remove(&a);
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&b, 12, 8, 1)));
  scheduler.Finish();
  b.tokens.push_back(7);
  EXPECT_THAT(scheduler.Compose(),
              ElementsAre(Slice(&b, 20, 1, 1), Slice(&c, 0, 4, 1)));
}

TEST(SequenceSchedulerTest, ChunksEndWhereTheLogitRowsDo) {
  KvBlockPool pool = Pool(8);
  SequenceScheduler scheduler(&pool,
                              {.tokens = 16, .logit_rows = 3, .sequences = 4});
  SequenceState a = OfLength(10, 1);
  a.rows_from = 2;  // scored from the third token on
  scheduler.Add(&a);
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&a, 0, 5, 3)));
  scheduler.Finish();
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&a, 5, 3, 3)));
}

TEST(SequenceSchedulerTest, TheYoungestMakesRoomAndComesBack) {
  KvBlockPool pool = Pool(2);
  SequenceScheduler scheduler(&pool,
                              {.tokens = 256, .logit_rows = 8, .sequences = 4});
  SequenceState a = OfLength(60, 1), b = OfLength(60, 2);
  scheduler.Add(&a);
  scheduler.Add(&b);
  EXPECT_EQ(scheduler.Compose().size(), 2u);
  scheduler.Finish();
  for (int i = 0; i < 4; ++i) {
    a.tokens.push_back(7);
    b.tokens.push_back(7);
    EXPECT_EQ(scheduler.Compose().size(), 2u);
    scheduler.Finish();
  }
  a.tokens.push_back(7);
  b.tokens.push_back(7);
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&a, 64, 1, 1)));
  EXPECT_EQ(b.put_back, 1);
  EXPECT_EQ(b.kv.length, 0);
  scheduler.Finish();
  scheduler.Remove(&a);
  // Its first block is still there: only what is behind it is computed again.
  const auto again = scheduler.Compose();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].sequence, &b);
  EXPECT_EQ(again[0].begin + again[0].count, 65);
  EXPECT_EQ(again[0].rows, 1);
}

TEST(SequenceSchedulerTest, ACommonBeginningIsComputedOnce) {
  KvBlockPool pool = Pool(16);
  SequenceScheduler scheduler(&pool,
                              {.tokens = 64, .logit_rows = 8, .sequences = 4});
  SequenceState a = OfLength(150, 1), b = OfLength(150, 1), c = OfLength(9, 2);
  b.tokens[140] = 5;
  scheduler.Add(&a);
  scheduler.Add(&b);
  scheduler.Add(&c);
  // b waits for a, which it has two blocks in common with; c need not.
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&a, 0, 64, 0)));
  scheduler.Finish();
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&a, 64, 64, 0)));
  scheduler.Finish();
  EXPECT_THAT(scheduler.Compose(),
              ElementsAre(Slice(&a, 128, 22, 1), Slice(&b, 128, 22, 1),
                          Slice(&c, 0, 9, 1)));
  EXPECT_EQ(b.reused_tokens, 128);
}

// The same prompt again: at least its last token is computed.
TEST(SequenceSchedulerTest, OneTokenOfAKnownPromptIsComputed) {
  KvBlockPool pool = Pool(8);
  SequenceScheduler scheduler(&pool,
                              {.tokens = 512, .logit_rows = 8, .sequences = 4});
  SequenceState a = OfLength(128, 1), b = OfLength(128, 1);
  scheduler.Add(&a);
  scheduler.Compose();
  scheduler.Finish();
  scheduler.Remove(&a);
  scheduler.Add(&b);
  EXPECT_THAT(scheduler.Compose(), ElementsAre(Slice(&b, 64, 64, 1)));
}

TEST(SequenceSchedulerTest, WhatIsScoredIsNotTakenFromOthers) {
  KvBlockPool pool = Pool(8);
  SequenceScheduler scheduler(
      &pool, {.tokens = 512, .logit_rows = 512, .sequences = 4});
  SequenceState a = OfLength(128, 1), b = OfLength(128, 1);
  b.rows_from = 0;
  scheduler.Add(&a);
  scheduler.Compose();
  scheduler.Finish();
  scheduler.Add(&b);
  a.tokens.push_back(7);
  EXPECT_THAT(scheduler.Compose(),
              ElementsAre(Slice(&a, 128, 1, 1), Slice(&b, 0, 128, 128)));
}

TEST(SequenceSchedulerTest, HiddenStatesTakeNoneOfTheLogitRows) {
  KvBlockPool pool = Pool(8);
  SequenceScheduler scheduler(&pool,
                              {.tokens = 64, .logit_rows = 2, .sequences = 4});
  SequenceState a = OfLength(20, 1), b = OfLength(20, 2), c = OfLength(20, 3);
  a.rows_from = 0;
  a.row_kind = RowKind::kHidden;
  b.rows_from = 0;
  for (SequenceState* sequence : {&a, &b, &c}) scheduler.Add(sequence);
  EXPECT_THAT(scheduler.Compose(),
              ElementsAre(Slice(&a, 0, 20, 20), Slice(&b, 0, 2, 2),
                          Slice(&c, 0, 19, 0)));
}

// A model whose next token depends on all before it, and that notices a cache
// that holds anything else.
class Simulation {
 public:
  explicit Simulation(std::mt19937* random)
      : random_(*random),
        pool_(3 + Below(12), kKvBlockTokens),
        scheduler_(&pool_, {.tokens = 1 + Below(90),
                            .logit_rows = 1 + Below(6),
                            .sequences = 1 + Below(9)}) {}

  void Run() {
    constexpr int kRequests = 25;
    int passes = 0;
    while (finished_ < kRequests) {
      ASSERT_LT(++passes, 200000) << "no end in sight";
      while (std::ssize(requests_) < kRequests && Below(3) == 0) AddRequest();
      if (scheduler_.empty()) continue;
      Pass();
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(scheduler_.empty());
    EXPECT_EQ(pool_.free_count(), pool_.block_count());
  }

  int64_t put_back() const { return put_back_; }
  int64_t reused() const { return reused_; }

 private:
  struct Request {
    SequenceState state;
    int64_t prompt = 0;
    int64_t wanted = 0;  // generated tokens
  };

  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }

  // Prompts of few kinds, so that beginnings are shared.
  void AddRequest() {
    auto request = std::make_unique<Request>();
    const int64_t most = 3 * kKvBlockTokens;  // of the smallest pool
    request->prompt = 1 + Below(most - 40);
    request->wanted = 1 + Below(40);
    const auto kind = static_cast<TokenId>(Below(3));
    request->state = OfLength(request->prompt, kind);
    if (Below(2) == 0) request->state.tokens.back() = 100;
    if (Below(4) == 0) request->state.rows_from = 0;
    if (Below(4) == 0) request->state.row_kind = RowKind::kHidden;
    scheduler_.Add(&request->state);
    requests_.push_back(std::move(request));
  }

  static TokenId Next(const std::vector<TokenId>& tokens) {
    uint32_t hash = 7;
    for (const TokenId token : tokens)
      hash = hash * 31 + static_cast<uint32_t>(token);
    return static_cast<TokenId>(hash % 3);
  }

  void Pass() {
    const auto slices = scheduler_.Compose();
    ASSERT_FALSE(slices.empty());
    std::vector<SequenceState*> sampled;
    for (const SequenceSlice& slice : slices) {
      ASSERT_GE(slice.count, 1);
      Compute(slice);
      if (slice.begin + slice.count == std::ssize(slice.sequence->tokens)) {
        ASSERT_GE(slice.rows, 1);
        sampled.push_back(slice.sequence);
      }
    }
    scheduler_.Finish();
    for (SequenceState* sequence : sampled) Sample(sequence);
  }

  void Compute(const SequenceSlice& slice) {
    const SequenceState& sequence = *slice.sequence;
    ASSERT_EQ(slice.begin, sequence.kv.length);
    std::vector<TokenId> prefix;
    for (int64_t i = 0; i < slice.begin + slice.count; ++i) {
      prefix.push_back(sequence.tokens[static_cast<size_t>(i)]);
      const int block =
          sequence.kv.blocks[static_cast<size_t>(i / kKvBlockTokens)];
      auto& held = cache_[{block, i % kKvBlockTokens}];
      if (i < slice.begin) {
        ASSERT_EQ(held, prefix) << "position " << i;
      } else {
        held = prefix;
      }
    }
  }

  void Sample(SequenceState* sequence) {
    const auto request = std::find_if(
        requests_.begin(), requests_.end(),
        [&](const auto& each) { return &each->state == sequence; });
    const int64_t generated = std::ssize(sequence->tokens) - (*request)->prompt;
    if (generated < (*request)->wanted) {
      sequence->tokens.push_back(Next(sequence->tokens));
      return;
    }
    // As it comes out alone.
    std::vector<TokenId> alone(sequence->tokens.begin(),
                               sequence->tokens.begin() + (*request)->prompt);
    for (int64_t i = 0; i < generated; ++i) alone.push_back(Next(alone));
    ASSERT_EQ(sequence->tokens, alone);
    put_back_ += sequence->put_back;
    reused_ += sequence->reused_tokens;
    scheduler_.Remove(sequence);
    ++finished_;
  }

  std::mt19937& random_;
  KvBlockPool pool_;
  SequenceScheduler scheduler_;
  std::deque<std::unique_ptr<Request>> requests_;
  std::map<std::pair<int, int64_t>, std::vector<TokenId>> cache_;
  int finished_ = 0;
  int64_t put_back_ = 0;
  int64_t reused_ = 0;
};

TEST(SequenceSchedulerTest, EverySequenceComesOutAsAlone) {
  int64_t put_back = 0, reused = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    Simulation simulation(&random);
    simulation.Run();
    if (::testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
    put_back += simulation.put_back();
    reused += simulation.reused();
  }
  // Else it says little.
  EXPECT_GT(put_back, 100);
  EXPECT_GT(reused, 10000);
}

}  // namespace
}  // namespace coldstream
