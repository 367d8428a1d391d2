#include "runtime/pair_merge.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace coldstream {
namespace {

using MergeTable = std::map<std::pair<int32_t, int32_t>, PairMerge>;

std::vector<int32_t> Merged(const std::vector<int32_t>& ids,
                            const MergeTable& table) {
  PairMerger merger;
  for (const int32_t id : ids) merger.Add(id, 1);
  merger.Run([&](const PairMerger::Symbol& l,
                 const PairMerger::Symbol& r) -> std::optional<PairMerge> {
    const auto it = table.find({l.id, r.id});
    if (it == table.end()) return std::nullopt;
    return it->second;
  });
  std::vector<int32_t> out;
  uint32_t end = 0;
  merger.ForEach([&](const PairMerger::Symbol& symbol) {
    EXPECT_EQ(symbol.begin, end);
    end += symbol.length;
    out.push_back(symbol.id);
  });
  EXPECT_EQ(end, ids.size());
  return out;
}

// The definition: the best pair anywhere, leftmost first, one at a time.
std::vector<int32_t> MergedOneByOne(std::vector<int32_t> ids,
                                    const MergeTable& table) {
  while (true) {
    size_t best = ids.size();
    PairMerge merge{UINT32_MAX, 0};
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto it = table.find({ids[i], ids[i + 1]});
      if (it != table.end() && it->second.priority < merge.priority) {
        best = i;
        merge = it->second;
      }
    }
    if (best == ids.size()) return ids;
    ids[best] = merge.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(PairMergeTest, NothingAndOneSymbolStayAsTheyAre) {
  EXPECT_EQ(Merged({}, {}), std::vector<int32_t>{});
  EXPECT_EQ(Merged({5}, {{{5, 5}, {0, 6}}}), std::vector<int32_t>{5});
}

TEST(PairMergeTest, EqualPrioritiesMergeFromTheLeft) {
  const MergeTable table = {{{1, 1}, {0, 2}}};
  EXPECT_EQ(Merged({1, 1, 1}, table), (std::vector<int32_t>{2, 1}));
}

TEST(PairMergeTest, ALaterBetterPairGoesFirst) {
  const MergeTable table = {{{1, 2}, {5, 10}}, {{2, 3}, {4, 11}}};
  EXPECT_EQ(Merged({1, 2, 3}, table), (std::vector<int32_t>{1, 11}));
}

TEST(PairMergeTest, EqualsMergingOneByOneOnRandomTables) {
  std::mt19937 rng(1);
  for (int round = 0; round < 300; ++round) {
    // Texts over {a, b}; a merge's id stands for its text, as in a vocabulary.
    std::vector<std::string> texts = {"a", "b"};
    std::map<std::string, int32_t> ids = {{"a", 0}, {"b", 1}};
    MergeTable table;
    for (uint32_t rank = 0; rank < 12; ++rank) {
      const auto l = static_cast<int32_t>(rng() % texts.size());
      const auto r = static_cast<int32_t>(rng() % texts.size());
      const std::string text =
          texts[static_cast<size_t>(l)] + texts[static_cast<size_t>(r)];
      const auto [it, added] =
          ids.emplace(text, static_cast<int32_t>(texts.size()));
      if (added) texts.push_back(text);
      table.try_emplace({l, r}, PairMerge{rank / 2, it->second});
    }
    std::vector<int32_t> symbols(rng() % 60);
    for (int32_t& symbol : symbols) symbol = static_cast<int32_t>(rng() % 2);
    ASSERT_EQ(Merged(symbols, table), MergedOneByOne(symbols, table))
        << "round " << round;
  }
}

TEST(PairMergeTest, CanBeUsedAgainAfterClear) {
  PairMerger merger;
  merger.Add(1, 3);
  merger.Clear();
  merger.Add(2, 4);
  int symbols = 0;
  merger.ForEach([&](const PairMerger::Symbol& symbol) {
    ++symbols;
    EXPECT_EQ(symbol.begin, 0u);
    EXPECT_EQ(symbol.length, 4u);
  });
  EXPECT_EQ(symbols, 1);
}

}  // namespace
}  // namespace coldstream
