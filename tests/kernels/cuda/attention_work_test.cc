#include "kernels/cuda/attention_work.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace coldstream {
namespace {

struct TokenRun {
  int64_t first_position;
  int64_t tokens;
};

// One sequence a run.
class Pass {
 public:
  explicit Pass(const std::vector<TokenRun>& runs) {
    for (size_t s = 0; s < runs.size(); ++s) {
      for (int64_t i = 0; i < runs[s].tokens; ++i) {
        positions_.push_back(runs[s].first_position + i);
        sequence_.push_back(static_cast<int32_t>(s));
      }
      limits_.blocks += (positions_.back() + 64) / 64;
    }
    limits_.tokens = static_cast<int64_t>(positions_.size());
  }
  PassTokens tokens() const {
    PassTokens tokens;
    tokens.positions = positions_;
    tokens.sequence = sequence_;
    return tokens;
  }
  const PassLimits& limits() const { return limits_; }

 private:
  std::vector<int64_t> positions_;
  std::vector<int32_t> sequence_;
  PassLimits limits_;
};

cuda::AttentionWork PlanOf(const Pass& pass) {
  cuda::AttentionWork work(pass.limits());
  work.Plan(pass.tokens());
  return work;
}

// Each token is in the tiles, or in the decode list with each of its splits.
void ExpectEveryTokenOnce(const Pass& pass, const cuda::AttentionWork& work) {
  std::multiset<int32_t> splits;  // by token
  std::set<int32_t> partials;
  std::multiset<int32_t> in_tiles;
  for (const cuda::DecodeItem& item : work.decode()) {
    splits.insert(item.token);
    if (item.partial < 0) continue;
    EXPECT_TRUE(partials.insert(item.partial).second);
    EXPECT_LT(item.partial, cuda::AttentionWork::MostPartials(pass.limits()));
  }
  for (const cuda::PrefillTile& tile : work.tiles())
    for (int32_t i = 0; i < tile.count; ++i) in_tiles.insert(tile.token + i);
  const PassTokens tokens = pass.tokens();
  for (int32_t t = 0; t < static_cast<int32_t>(tokens.positions.size()); ++t) {
    const auto keys = tokens.positions[static_cast<size_t>(t)] + 1;
    if (in_tiles.contains(t)) {
      EXPECT_EQ(in_tiles.count(t), 1u);
      EXPECT_EQ(splits.count(t), 0u);
    } else {
      EXPECT_EQ(splits.count(t),
                static_cast<size_t>((keys + cuda::kSplitKeys - 1) /
                                    cuda::kSplitKeys));
    }
  }
}

TEST(CudaAttentionWorkTest, EveryTokenIsTakenOnce) {
  for (const std::vector<TokenRun>& runs : std::vector<std::vector<TokenRun>>{
           {{0, 1}},
           {{255, 1}, {256, 1}, {0, 1}},
           {{0, 200}, {8000, 1}, {100, 5}, {0, 16}},
           {{4000, 15}, {4000, 15}, {4000, 15}, {4000, 15}},
           {{30000, 64}}}) {
    const Pass pass(runs);
    ExpectEveryTokenOnce(pass, PlanOf(pass));
  }
}

TEST(CudaAttentionWorkTest, OneTokenOfEachSequenceIsAlwaysDecoded) {
  std::vector<TokenRun> runs(40, TokenRun{511, 1});
  runs.push_back({100000, 1});
  const auto work = PlanOf(Pass(runs));
  EXPECT_TRUE(work.tiles().empty());
  EXPECT_EQ(work.combine().size(), runs.size());
}

TEST(CudaAttentionWorkTest, ATokenOfOneSplitNeedsNoAddingUp) {
  const auto work = PlanOf(Pass({{255, 1}, {3, 1}}));
  EXPECT_EQ(work.decode().size(), 2u);
  EXPECT_EQ(work.decode()[0].partial, -1);
  EXPECT_TRUE(work.combine().empty());
}

TEST(CudaAttentionWorkTest, TheSplitsOfATokenFollowOneAnother) {
  const auto work = PlanOf(Pass({{600, 1}, {300, 1}}));
  ASSERT_EQ(work.combine().size(), 2u);
  EXPECT_EQ(work.combine()[1].splits, 2);
  for (const cuda::DecodeItem& item : work.decode()) {
    const cuda::CombineItem& combine =
        work.combine()[static_cast<size_t>(item.token)];
    EXPECT_EQ(item.partial, combine.partial + item.split);
  }
}

TEST(CudaAttentionWorkTest, APromptGoesInTilesOfOneSequenceTheLastFirst) {
  const auto work = PlanOf(Pass({{0, 130}, {0, 64}}));
  EXPECT_TRUE(work.decode().empty());
  ASSERT_EQ(work.tiles().size(), 4u);
  EXPECT_EQ(work.tiles()[0].token, 128);
  EXPECT_EQ(work.tiles()[0].count, 2);
  EXPECT_EQ(work.tiles()[2].token, 0);
  EXPECT_EQ(work.tiles()[3].token, 130);
  EXPECT_EQ(work.tiles()[3].count, 64);
}

TEST(CudaAttentionWorkTest, ShortRunsBeyondTheSparePartialResultsGoInTiles) {
  // 15 tokens of 118 splits each are more than there is room for.
  const auto work = PlanOf(Pass({{30000, 15}, {30000, 1}}));
  EXPECT_EQ(work.tiles().size(), 1u);
  EXPECT_EQ(work.combine().size(), 1u);
}

}  // namespace
}  // namespace coldstream
