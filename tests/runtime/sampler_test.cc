#include "runtime/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "kernels/best_logits.h"
#include "kernels/ops.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Nothing cut, temperature 1: draws follow softmax of the logits.
SamplingOptions Plain(uint64_t seed = 0) {
  return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed};
}

Sampler Make(const SamplingOptions& options) {
  auto sampler = Sampler::Create(options);
  EXPECT_THAT(sampler, IsOk());
  return *std::move(sampler);
}

TokenId SampleOne(Sampler& sampler, const std::vector<float>& logits) {
  auto id = sampler.Sample(logits, static_cast<int64_t>(logits.size()));
  EXPECT_THAT(id, IsOk());
  return id.value_or(-1);
}

std::vector<TokenId> Draws(Sampler& sampler, const std::vector<float>& logits,
                           int count) {
  std::vector<TokenId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(SampleOne(sampler, logits));
  return ids;
}

std::set<TokenId> Support(const SamplingOptions& options,
                          const std::vector<float>& logits) {
  Sampler sampler = Make(options);
  const std::vector<TokenId> ids = Draws(sampler, logits, 2000);
  return {ids.begin(), ids.end()};
}

std::vector<float> RandomLogits(size_t vocab, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> logits(vocab);
  for (float& logit : logits)
    logit = static_cast<float>(random() % 20001) / 1000.0f - 10.0f;
  return logits;
}

TEST(Sampler, TemperatureZeroIsArgMaxWithTheLowestIdOnTies) {
  Sampler sampler = Make({.temperature = 0});
  EXPECT_EQ(SampleOne(sampler, {0, 3, -1, 3}), 1);
  EXPECT_EQ(SampleOne(sampler, {-5, -4, -4.5f}), 1);
  EXPECT_EQ(SampleOne(sampler, {2, 2, 2}), 0);
}

TEST(Sampler, GreedyIgnoresSeedAndCuts) {
  const std::vector<float> logits = RandomLogits(1000, 3);
  const auto best = std::max_element(logits.begin(), logits.end());
  Sampler sampler = Make(
      {.temperature = 0, .top_k = 2, .top_p = 0.1, .min_p = 1, .seed = 99});
  EXPECT_EQ(SampleOne(sampler, logits), best - logits.begin());
}

TEST(Sampler, TheSameSeedGivesTheSameTokens) {
  const std::vector<float> logits = RandomLogits(500, 1);
  Sampler a = Make(Plain(42));
  Sampler b = Make(Plain(42));
  Sampler c = Make(Plain(43));
  const std::vector<TokenId> ids = Draws(a, logits, 200);
  EXPECT_EQ(ids, Draws(b, logits, 200));
  EXPECT_NE(ids, Draws(c, logits, 200));
}

// The generator is part of the promise: a seed means the same in every build.
TEST(Sampler, TheFirstDrawsOfSeedsAreFixed) {
  const std::vector<float> logits(1000, 0.0f);
  Sampler zero = Make(Plain(0));
  EXPECT_THAT(Draws(zero, logits, 5), ElementsAre(601, 747, 103, 416, 732));
  Sampler other = Make(Plain(1234567));
  EXPECT_THAT(Draws(other, logits, 5), ElementsAre(189, 98, 67, 918, 628));
}

TEST(Sampler, AnotherSamplerInBetweenChangesNothing) {
  const std::vector<float> logits = RandomLogits(300, 5);
  Sampler alone = Make(Plain(7));
  const std::vector<TokenId> expected = Draws(alone, logits, 50);
  Sampler one = Make(Plain(7));
  Sampler two = Make(Plain(8));
  std::vector<TokenId> ids;
  for (int i = 0; i < 50; ++i) {
    SampleOne(two, logits);
    ids.push_back(SampleOne(one, logits));
  }
  EXPECT_EQ(ids, expected);
}

TEST(Sampler, DrawsFollowTheSoftmaxAtTheTemperature) {
  const std::vector<float> logits = {1.0f, 2.0f, 0.0f, -1.0f};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    SamplingOptions options = Plain(11);
    options.temperature = temperature;
    Sampler sampler = Make(options);
    constexpr int kDraws = 40000;
    std::vector<int> counts(logits.size());
    for (TokenId id : Draws(sampler, logits, kDraws))
      ++counts[static_cast<size_t>(id)];
    double total = 0;
    for (float logit : logits) total += std::exp(logit / temperature);
    for (size_t id = 0; id < logits.size(); ++id) {
      const double p = std::exp(logits[id] / temperature) / total;
      const double sigma = std::sqrt(kDraws * p * (1 - p));
      EXPECT_NEAR(counts[id], kDraws * p, 5 * sigma)
          << "id " << id << " at temperature " << temperature;
    }
  }
}

TEST(Sampler, ATinyTemperatureIsAsGoodAsGreedy) {
  SamplingOptions options = Plain();
  for (const double temperature : {1e-6, 1e-300, 5e-324}) {
    options.temperature = temperature;
    EXPECT_EQ(Support(options, {1, 5, 4.999f, -20}), std::set<TokenId>{1});
  }
}

TEST(Sampler, AHugeTemperatureReachesEveryToken) {
  SamplingOptions options = Plain();
  options.temperature = 1e300;
  EXPECT_EQ(Support(options, {1, 50, -50}), (std::set<TokenId>{0, 1, 2}));
}

TEST(Sampler, TopKKeepsTheBestAndBreaksTiesByLowestId) {
  SamplingOptions options = Plain();
  options.top_k = 2;
  EXPECT_EQ(Support(options, {1, 2, 3, 2, 2}), (std::set<TokenId>{1, 2}));
  options.top_k = 1;
  EXPECT_EQ(Support(options, {1, 2, 3, 3}), (std::set<TokenId>{2}));
}

TEST(Sampler, TopKOfTheVocabularyOrMoreEqualsNone) {
  const std::vector<float> logits = RandomLogits(64, 2);
  Sampler none = Make(Plain(3));
  const std::vector<TokenId> expected = Draws(none, logits, 100);
  for (const int64_t k : {int64_t{64}, int64_t{65}, int64_t{1} << 40}) {
    SamplingOptions options = Plain(3);
    options.top_k = k;
    Sampler sampler = Make(options);
    EXPECT_EQ(Draws(sampler, logits, 100), expected) << k;
  }
}

TEST(Sampler, TopPKeepsTheFewestTokensThatReachIt) {
  // Probabilities 0.5, 0.25, 0.125, 0.125.
  const float step = std::log(2.0f);
  const std::vector<float> logits = {-step, 0, -2 * step, -2 * step};
  SamplingOptions options = Plain();
  options.top_p = 0.4;
  EXPECT_EQ(Support(options, logits), (std::set<TokenId>{1}));
  options.top_p = 0.6;
  EXPECT_EQ(Support(options, logits), (std::set<TokenId>{0, 1}));
  options.top_p = 0.8;
  EXPECT_EQ(Support(options, logits), (std::set<TokenId>{0, 1, 2}));
  options.top_p = 0.99;
  EXPECT_EQ(Support(options, logits), (std::set<TokenId>{0, 1, 2, 3}));
  options.top_p = 0;
  EXPECT_EQ(Support(options, logits), (std::set<TokenId>{1}));
}

TEST(Sampler, TopPIsTakenBeforeTemperature) {
  const float step = std::log(2.0f);
  SamplingOptions options = Plain();
  options.top_p = 0.6;
  options.temperature = 100;  // would be nearly uniform before the cut
  EXPECT_EQ(Support(options, {0, -step, -2 * step, -2 * step}),
            (std::set<TokenId>{0, 1}));
}

TEST(Sampler, MinPKeepsWhatIsLikelyEnoughBesideTheBest) {
  const float step = std::log(2.0f);
  const std::vector<float> logits = {0, -step, -2 * step, -3 * step};
  SamplingOptions options = Plain();
  options.min_p = 0.2;
  EXPECT_EQ(Support(options, logits), (std::set<TokenId>{0, 1, 2}));
  options.min_p = 0.4;
  EXPECT_EQ(Support(options, logits), (std::set<TokenId>{0, 1}));
  options.min_p = 1;
  EXPECT_EQ(Support(options, {0, 1, 1, 0.5f}), (std::set<TokenId>{1, 2}));
}

TEST(Sampler, TheRepetitionPenaltyPushesBothSignsDown) {
  Sampler sampler = Make({.temperature = 0, .repeat_penalty = 2});
  EXPECT_EQ(SampleOne(sampler, {4, 3, -1}), 0);
  sampler.Accept(0);
  EXPECT_EQ(SampleOne(sampler, {4, 3, -1}), 1);
  EXPECT_EQ(SampleOne(sampler, {-2, -3, -9}), 1);
}

TEST(Sampler, TheRepetitionPenaltyForgetsBeyondItsWindow) {
  SamplingOptions options = {.temperature = 0, .repeat_penalty = 2};
  options.repeat_last_n = 2;
  Sampler sampler = Make(options);
  sampler.Accept(0);
  sampler.Accept(0);
  sampler.Accept(5);
  EXPECT_EQ(SampleOne(sampler, {4, 3}), 1);  // one 0 is still in the window
  sampler.Accept(6);
  EXPECT_EQ(SampleOne(sampler, {4, 3}), 0);
}

TEST(Sampler, TheRepetitionWindowMayBeEndlessOrOff) {
  SamplingOptions options = {.temperature = 0, .repeat_penalty = 2};
  options.repeat_last_n = -1;
  Sampler endless = Make(options);
  options.repeat_last_n = 0;
  Sampler off = Make(options);
  for (TokenId id = 0; id < 5000; ++id) {
    endless.Accept(id % 2 == 0 ? 0 : id);
    off.Accept(0);
  }
  for (TokenId id = 6000; id < 12000; ++id) endless.Accept(id);
  EXPECT_EQ(SampleOne(endless, {4, 2.5f, 3}), 2);
  EXPECT_EQ(SampleOne(off, {4, 3}), 0);
}

TEST(Sampler, ARepeatedIdOutsideTheVocabularyIsHarmless) {
  Sampler sampler = Make({.temperature = 0, .repeat_penalty = 2});
  sampler.Accept(-1);
  sampler.Accept(1 << 30);
  EXPECT_EQ(SampleOne(sampler, {4, 3}), 0);
}

TEST(Sampler, PaddingRowsAreNeverChosenOrLookedAt) {
  Sampler greedy = Make({.temperature = 0});
  const std::vector<float> logits = {1, 2, 100, kInf};
  EXPECT_THAT(greedy.Sample(logits, 2), IsOkAndHolds(1));
  EXPECT_THAT(greedy.Sample(std::span(logits).first(3), 1000), IsOkAndHolds(2));
}

TEST(Sampler, NaNAndPlusInfinityAreRefusedWithTheFirstBadId) {
  Sampler sampler = Make({});
  std::vector<float> logits = {0, 1, 2, 3};
  logits[2] = std::nanf("");
  logits[3] = kInf;
  EXPECT_THAT(sampler.Sample(logits, 4),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("logits are not finite"),
                             HasSubstr("token 2"))));
  logits[2] = 0;
  EXPECT_THAT(sampler.Sample(logits, 4),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("token 3 has inf")));
}

TEST(Sampler, MinusInfinityRulesATokenOut) {
  EXPECT_EQ(Support(Plain(), {0, -kInf, 0}), (std::set<TokenId>{0, 2}));
  Sampler greedy = Make({.temperature = 0, .repeat_penalty = 2});
  greedy.Accept(0);
  EXPECT_EQ(SampleOne(greedy, {-kInf, -1e30f}), 1);
}

TEST(Sampler, NoChoiceAtAllIsAnError) {
  Sampler sampler = Make({});
  EXPECT_THAT(sampler.Sample(std::vector<float>{-kInf, -kInf}, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("minus infinity")));
  EXPECT_THAT(sampler.Sample({}, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, "no logits"));
  EXPECT_THAT(sampler.Sample(std::vector<float>{1}, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, "no logits"));
}

TEST(Sampler, ExtremeFiniteLogitsAreFine) {
  const float most = std::numeric_limits<float>::max();
  SamplingOptions options = Plain();
  options.repeat_penalty = 1000;
  Sampler sampler = Make(options);
  sampler.Accept(0);
  EXPECT_EQ(SampleOne(sampler, {-most, -most, most}), 2);
  EXPECT_EQ(SampleOne(sampler, {-most, -most / 2}), 1);
}

struct BadOption {
  const char* name;
  SamplingOptions options;
};

TEST(Sampler, ValuesThatAreNotFiniteOrOutOfRangeAreRefusedByName) {
  const double inf = kInf;
  const BadOption table[] = {
      {"temperature", {.temperature = -0.1}},
      {"temperature", {.temperature = kNaN}},
      {"temperature", {.temperature = inf}},
      {"top_k", {.top_k = -1}},
      {"top_p", {.top_p = -0.1}},
      {"top_p", {.top_p = 1.1}},
      {"top_p", {.top_p = kNaN}},
      {"min_p", {.min_p = -0.1}},
      {"min_p", {.min_p = 2}},
      {"min_p", {.min_p = kNaN}},
      {"repeat_penalty", {.repeat_penalty = 0}},
      {"repeat_penalty", {.repeat_penalty = -1}},
      {"repeat_penalty", {.repeat_penalty = kNaN}},
      {"repeat_penalty", {.repeat_penalty = inf}},
      {"repeat_last_n", {.repeat_last_n = -2}},
  };
  for (const BadOption& bad : table) {
    EXPECT_THAT(
        Sampler::Create(bad.options),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.name)));
  }
}

TEST(Sampler, TheBestLogitsGiveTheTokenThatAllWouldGive) {
  for (const SamplingOptions& options : std::vector<SamplingOptions>{
           {.temperature = 0, .seed = 1},
           {.temperature = 0, .top_k = 0, .seed = 1},
           {.temperature = 0.7, .top_k = 1, .seed = 1},
           {.seed = 2},
           {.temperature = 2, .top_k = 2, .top_p = 1, .min_p = 0, .seed = 3},
           {.temperature = 5, .top_k = 40, .top_p = 0.9, .min_p = 0, .seed = 4},
           {.temperature = 3, .top_k = 256, .top_p = 1, .min_p = 0.01},
           {.top_k = 256, .repeat_penalty = 1.5, .repeat_last_n = 0}}) {
    Sampler of_all = Make(options);
    Sampler of_best = Make(options);
    const int64_t choices = of_best.choices();
    ASSERT_GT(choices, 0);
    for (uint32_t draw = 0; draw < 200; ++draw) {
      // Of few values, so that most choices are among equals; padding behind.
      std::vector<float> logits = RandomLogits(600, draw);
      for (float& logit : logits) logit = std::round(logit);
      std::fill(logits.begin() + 500, logits.end(), 100.0f);
      if (draw == 7) std::fill(logits.begin() + 3, logits.begin() + 500, -kInf);
      std::vector<LogitChoice> best(static_cast<size_t>(choices));
      BestLogits(logits.data(), 500, choices, best.data());
      const auto expected = of_all.Sample(logits, 500);
      const auto got = of_best.SampleRow(LogitRow{.best = best}, 500);
      ASSERT_THAT(expected, IsOk());
      ASSERT_THAT(got, IsOk());
      ASSERT_EQ(*got, *expected)
          << "draw " << draw << " of the best " << choices;
      of_all.Accept(*expected);
      of_best.Accept(*got);
    }
  }
}

// A value of every kind that a comparison or a sum may go wrong at; of few
// kinds, so that ties are common.
float OddLogit(std::mt19937* random) {
  constexpr float kOdd[] = {0,       -0.0f, 1,      -1,    1e-45f,
                            -1e-45f, 88,    -1e30f, 3e38f, -3e38f};
  const auto pick = (*random)();
  if (pick % 4 == 0) return -kInf;
  if (pick % 4 == 1) return kOdd[pick / 4 % std::size(kOdd)];
  return static_cast<float>(pick / 4 % 64) / 8 - 4;
}

SamplingOptions RandomSampling(std::mt19937* random) {
  const auto of = [&](std::initializer_list<double> values) {
    return values.begin()[(*random)() % values.size()];
  };
  return {.temperature = of({0, 1e-3, 0.8, 1, 5, 1e6}),
          .top_k = static_cast<int64_t>(of({1, 2, 7, 40, 255, 256})),
          .top_p = of({0, 0.5, 0.95, 1}),
          .min_p = of({0, 0.05, 0.5, 1}),
          .repeat_penalty = of({1, 1, 1.3}),
          .repeat_last_n = static_cast<int64_t>(of({0, 0, 64})),
          .seed = (*random)()};
}

// Both are given the same draws, one after the other: one that took a random
// number more than the other would part from it. Where Sample refuses a row for
// NaN or plus infinity, the best of it are not looked at either: the pass that
// the row came from has failed its check.
TEST(Sampler, NoSettingTellsTheBestOfOddLogitsFromAllOfThem) {
  const Ops& ops = **OpsFor(Isa::kScalar);
  std::mt19937 random(3);
  int compared = 0, refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const SamplingOptions options = RandomSampling(&random);
    Sampler of_all = Make(options);
    Sampler of_best = Make(options);
    const int64_t choices = of_best.choices();
    if (choices == 0) {
      EXPECT_TRUE(options.repeat_penalty != 1 && options.repeat_last_n != 0);
      continue;
    }
    for (int draw = 0; draw < 10; ++draw) {
      std::vector<float> logits(1 + random() % 400);
      for (float& logit : logits) logit = OddLogit(&random);
      if (draw == 9)
        logits[random() % logits.size()] =
            random() % 2 == 0 ? kInf : static_cast<float>(kNaN);
      const auto vocab = static_cast<int64_t>(logits.size());
      const auto expected = of_all.Sample(logits, vocab);
      if (draw == 9) {
        EXPECT_FALSE(expected.ok() || ops.all_finite(logits.data(), vocab));
        ++refused;
        continue;
      }
      std::vector<LogitChoice> best(static_cast<size_t>(choices));
      BestLogits(logits.data(), vocab, choices, best.data());
      const auto got = of_best.SampleRow(LogitRow{.best = best}, vocab);
      ASSERT_EQ(got.status(), expected.status());
      if (!expected.ok()) continue;  // every token ruled out
      ASSERT_EQ(*got, *expected) << "trial " << trial << ", draw " << draw;
      of_all.Accept(*expected);
      of_best.Accept(*got);
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(refused, 100);
}

TEST(Sampler, AsksForAllLogitsWhereTheBestDoNotSuffice) {
  const auto choices = [](const SamplingOptions& options) {
    return Make(options).choices();
  };
  EXPECT_EQ(choices({.top_k = 0}), 0);
  EXPECT_EQ(choices({.top_k = kMostChoices + 1}), 0);
  EXPECT_EQ(choices({.temperature = 0, .repeat_penalty = 1.1}), 0);
  EXPECT_EQ(choices({.repeat_penalty = 0.9, .repeat_last_n = -1}), 0);
  EXPECT_EQ(choices({.top_k = kMostChoices}), kMostChoices);
  EXPECT_EQ(choices({.temperature = 0, .top_k = 0}), 1);
}

TEST(Sampler, NoChoiceAtAllIsTheErrorOfLogitsThatRuleEveryTokenOut) {
  Sampler sampler = Make({.top_k = 2});
  const std::vector<LogitChoice> none(2);
  const std::vector<float> logits(10, -kInf);
  EXPECT_EQ(sampler.SampleRow(LogitRow{.best = none}, 10).status(),
            sampler.Sample(logits, 10).status());
}

TEST(Sampler, TheEdgesOfEveryRangeAreAccepted) {
  EXPECT_THAT(Sampler::Create({.temperature = 0,
                               .top_k = 0,
                               .top_p = 0,
                               .min_p = 0,
                               .repeat_last_n = -1}),
              IsOk());
  EXPECT_THAT(
      Sampler::Create({.top_k = 1, .top_p = 1, .min_p = 1, .repeat_last_n = 0}),
      IsOk());
}

}  // namespace
}  // namespace coldstream
