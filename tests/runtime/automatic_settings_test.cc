#include "runtime/automatic_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/disk_identity.h"
#include "runtime/profile_keys.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

class AutomaticSettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TinyModelOptions tiny;
    tiny.layers = 8;
    tiny.hidden = 256;
    tiny.ffn = 2048;
    ASSERT_THAT(WriteTinyModel(dir_.Path("m.gguf"), tiny), IsOk());
    auto model = Model::Open({.path = dir_.Path("m.gguf")});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
    options_.threads = 2;
    options_.context = 64;
    options_.batch_tokens = 4;
    options_.ram_bytes = uint64_t{26} << 20;
    disk_ = IdentifyDisk(*model_->checkpoint().files().front()).Key();
  }

  Profile Empty() const {
    return Profile::Load({dir_.Path("profile.json"), "", true});
  }
  TunedKey Tuned() const {
    return {disk_, ModelKey(model_->checkpoint()), options_.ram_bytes, 2};
  }

  TempDir dir_;
  std::shared_ptr<const Model> model_;
  EngineOptions options_;
  std::string disk_;
};

TunedSettings Sevens() {
  TunedSettings tuned;
  tuned.prefetch_depth = 7;
  tuned.io_depth = 5;
  tuned.chunk_bytes = 1 << 18;
  tuned.backend = IoBackendKind::kPread;
  return tuned;
}

DiskRecord Sixes() {
  DiskRecord disk;
  disk.bytes_per_second = 1e9;
  disk.chunk_bytes = 2 << 20;
  disk.depth = 6;
  disk.backend = "uring";
  return disk;
}

TEST_F(AutomaticSettingsTest, WhatWasTunedIsUsedForItsModelAndBudget) {
  Profile profile = Empty();
  profile.PutTuned(Tuned(), Sevens());
  const auto chosen = ChooseSettings(*model_, options_, {}, &profile);
  ASSERT_THAT(chosen.status(), IsOk());
  EXPECT_EQ(chosen->source, SettingsSource::kTuned);
  EXPECT_EQ(chosen->options.prefetch_depth, 7);
  EXPECT_EQ(chosen->options.reader.depth, 5);
  EXPECT_EQ(chosen->options.reader.chunk_bytes, 1u << 18);
  EXPECT_EQ(chosen->options.reader.backend, IoBackendKind::kPread);

  EngineOptions other = options_;
  other.threads = 1;
  const auto none = ChooseSettings(*model_, other, {}, &profile);
  ASSERT_THAT(none.status(), IsOk());
  EXPECT_EQ(none->source, SettingsSource::kDefault);
  EXPECT_EQ(none->options.reader.depth, options_.reader.depth);
}

TEST_F(AutomaticSettingsTest, WhatWasTunedForThePageCacheIsNotForDirectReads) {
  if (!model_->checkpoint().files().front()->direct())
    GTEST_SKIP() << "no direct reads here";
  Profile profile = Empty();
  TunedSettings buffered = Sevens();
  buffered.direct = DirectMode::kOff;
  profile.PutTuned(Tuned(), buffered);
  const auto chosen = ChooseSettings(*model_, options_, {}, &profile);
  ASSERT_THAT(chosen.status(), IsOk());
  EXPECT_EQ(chosen->source, SettingsSource::kDefault);
}

TEST_F(AutomaticSettingsTest, WhatTheUserFixedStays) {
  Profile profile = Empty();
  profile.PutTuned(Tuned(), Sevens());
  options_.prefetch_depth = 2;
  options_.reader.depth = 9;
  const auto chosen = ChooseSettings(
      *model_, options_,
      {.prefetch_depth = true, .io_depth = true, .io_backend = true}, &profile);
  ASSERT_THAT(chosen.status(), IsOk());
  EXPECT_EQ(chosen->options.prefetch_depth, 2);
  EXPECT_EQ(chosen->options.reader.depth, 9);
  EXPECT_EQ(chosen->options.reader.backend, IoBackendKind::kAuto);
  EXPECT_EQ(chosen->options.reader.chunk_bytes, 1u << 18);
}

TEST_F(AutomaticSettingsTest, ADiskMeasuredEarlierGivesChunkAndDepth) {
  Profile profile = Empty();
  profile.PutDisk(disk_, Sixes());
  const auto chosen = ChooseSettings(*model_, options_, {}, &profile);
  ASSERT_THAT(chosen.status(), IsOk());
  EXPECT_EQ(chosen->source, SettingsSource::kProbe);
  EXPECT_EQ(chosen->options.reader.depth, 6);
  EXPECT_EQ(chosen->options.reader.chunk_bytes, 2u << 20);
}

TEST_F(AutomaticSettingsTest, NothingIsMeasuredForLittleOrForNothingToRead) {
  Profile profile = Empty();
  const auto little = ChooseSettings(*model_, options_, {}, &profile);
  ASSERT_THAT(little.status(), IsOk());
  EXPECT_EQ(little->source, SettingsSource::kDefault);
  options_.ram_bytes = uint64_t{1} << 30;
  profile.PutDisk(disk_, Sixes());
  const auto resident = ChooseSettings(*model_, options_, {}, &profile);
  ASSERT_THAT(resident.status(), IsOk());
  EXPECT_EQ(resident->source, SettingsSource::kDefault);
}

TEST_F(AutomaticSettingsTest, ABudgetThatIsTooSmallIsTheEnginesError) {
  Profile profile = Empty();
  options_.ram_bytes = 1 << 20;
  EXPECT_EQ(ChooseSettings(*model_, options_, {}, &profile).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace coldstream
