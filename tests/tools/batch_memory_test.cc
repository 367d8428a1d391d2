#include "tools/batch_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "base/byte_units.h"
#include "runtime/engine_plan.h"
#include "tests/support/status_matchers.h"
#include "tools/model_shape.h"
#include "tools/preset_model.h"
#include "tools/quant_mix.h"
#include "tools/synth_model.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

constexpr double kDisk = 2e9;
constexpr int64_t kPositions = 1000;

// An 8B model of 4.6 GB that nobody has to have; one token takes 0.23 s and
// each more 0.12 s.
class BatchMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto shape = ResolveShape({.preset = "llama3-8b"});
    const auto mix = QuantMix::FromName("q4_k_m");
    ASSERT_THAT(shape.status(), IsOk());
    ASSERT_THAT(mix.status(), IsOk());
    auto model = OpenPresetModel(DescribeSynthModel(*shape, *mix));
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
    auto rates = ComputeRates::MeasureWith(
        {.weight_byte = [](DType, int64_t tokens) -> StatusOr<double> {
           return 0.25e-10 + 0.25e-10 * static_cast<double>(tokens);
         },
         .attention_position = [](const LayerShape&, int64_t)
             -> StatusOr<double> { return 1e-9; }},
        *model_, {});
    ASSERT_THAT(rates.status(), IsOk());
    compute_ = *rates;
  }

  static EngineOptions Options(uint64_t ram) {
    EngineOptions options;
    options.ram_bytes = ram;
    options.threads = 2;
    options.context = 4096;
    options.max_sequences = 64;
    return options;
  }

  StatusOr<BatchMemory> Choose(uint64_t ram, double disk,
                               int64_t sequences = 64) {
    return ChooseBatchMemory(*model_, Options(ram),
                             {.sequences = sequences, .positions = kPositions},
                             [&]() -> StatusOr<MachineRates> {
                               ++asked_;
                               return MachineRates{.compute = &compute_,
                                                   .links = {.disk = disk}};
                             });
  }

  // Predicted with a cache for `n` requests and no other.
  double TokensPerSecond(uint64_t ram, double disk, int64_t n) {
    const auto memory = ChooseBatchMemory(
        *model_, Options(ram), {.sequences = n, .positions = kPositions},
        [&]() -> StatusOr<MachineRates> {
          return MachineRates{.compute = &compute_, .links = {.disk = disk}};
        });
    if (!memory.ok()) return 0;
    if (memory->sequences == n) return memory->tokens_per_second;
    for (const BatchMemory::Point& point : memory->others)
      if (point.sequences == n) return point.tokens_per_second;
    return 0;
  }

  std::shared_ptr<const Model> model_;
  ComputeRates compute_;
  int asked_ = 0;
};

TEST_F(BatchMemoryTest, WhereAllHasRoomNothingIsMeasured) {
  const auto memory = Choose(64 * kGiB, kDisk);
  ASSERT_THAT(memory.status(), IsOk());
  EXPECT_EQ(asked_, 0);
  EXPECT_TRUE(memory->all_resident);
  EXPECT_EQ(memory->sequences, 64);
  EXPECT_EQ(memory->kv_tokens, 64 * kPositions);
}

TEST_F(BatchMemoryTest, NoOtherCountIsPredictedToBeFaster) {
  for (const uint64_t gib : {2, 3, 4, 6}) {
    for (const double disk : {0.2e9, 1e9, 5e9}) {
      const auto chosen = Choose(gib * kGiB, disk);
      ASSERT_THAT(chosen.status(), IsOk());
      ASSERT_GT(chosen->tokens_per_second, 0);
      for (int64_t n = 2; n <= 64; n += 7) {
        EXPECT_LE(TokensPerSecond(gib * kGiB, disk, n),
                  1.05 * chosen->tokens_per_second)
            << gib << " GiB, disk " << disk << ": " << n << " against "
            << chosen->sequences;
      }
    }
  }
}

// The less a pass's reads cost beside its arithmetic, the less a request more
// brings.
TEST_F(BatchMemoryTest, AFasterDiskMakesFewerRequestsDo) {
  const auto slow = Choose(4 * kGiB, 0.2e9);
  const auto fast = Choose(4 * kGiB, 20e9);
  ASSERT_THAT(slow.status(), IsOk());
  ASSERT_THAT(fast.status(), IsOk());
  EXPECT_GE(slow->sequences, fast->sequences);
  EXPECT_LT(slow->tokens_per_second, fast->tokens_per_second);
}

TEST_F(BatchMemoryTest, TheChoiceIsAPlanThatFits) {
  const auto memory = Choose(3 * kGiB, kDisk);
  ASSERT_THAT(memory.status(), IsOk());
  EngineOptions options = Options(3 * kGiB);
  options.kv_tokens = memory->kv_tokens;
  const auto plan = PlanEngine(*model_, options);
  ASSERT_THAT(plan.status(), IsOk());
  EXPECT_EQ(plan->memory.fixed.kv, memory->kv_bytes);
  EXPECT_EQ(plan->memory.resident_bytes, memory->resident_bytes);
  EXPECT_LE(plan->memory.total(), 3 * kGiB);
}

TEST_F(BatchMemoryTest, WithoutADiskRateTheCacheHasAThird) {
  const auto memory = Choose(4 * kGiB, 0);
  ASSERT_THAT(memory.status(), IsOk());
  EXPECT_EQ(memory->tokens_per_second, 0);
  EXPECT_LE(memory->kv_bytes, 4 * kGiB / 3);
  EXPECT_GE(memory->kv_bytes, kGiB);
}

TEST_F(BatchMemoryTest, OneRequestHasRoomForItsWholeContext) {
  const auto memory = Choose(2 * kGiB, kDisk, /*sequences=*/1);
  ASSERT_THAT(memory.status(), IsOk());
  EXPECT_EQ(memory->kv_tokens, 4096);
}

TEST_F(BatchMemoryTest, TooLittleForOneRequestIsAnError) {
  EXPECT_EQ(Choose(64 * kMiB, kDisk).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(BatchMemoryTest, TheTextSaysWhatWasChosenAndWhatBetween) {
  const auto memory = Choose(3 * kGiB, kDisk);
  ASSERT_THAT(memory.status(), IsOk());
  const std::string text = BatchMemoryText(*memory);
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("%d requests of 1000 positions",
                                              memory->sequences)));
  EXPECT_THAT(text, HasSubstr("of weights stay; predicted"));
}

}  // namespace
}  // namespace coldstream
