#include "runtime/profile_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ProfileData Sample() {
  ProfileData data;
  data.disks["ext4 on disk 7"] = {.bytes_per_second = 1.5e9,
                                  .chunk_bytes = 2 << 20,
                                  .depth = 8,
                                  .direct = true,
                                  .registered = true,
                                  .backend = "uring",
                                  .date = "2026-12-02T18:55:08Z"};
  data.compute["a CPU"] = {.rates = {{"q4_k bytes/s", 1e10}, {"x", 0.5}},
                           .date = "2026-12-02T18:55:09Z"};
  data.tuned[{"ext4 on disk 7", "a model", 1 << 30, 2}] = {
      .prefetch_depth = 4,
      .io_depth = 16,
      .chunk_bytes = 1 << 20,
      .backend = IoBackendKind::kPread,
      .direct = DirectMode::kOff,
      .bytes_per_second = 1e9,
      .tokens_per_second = 2.5,
      .date = "2026-12-02T18:55:10Z"};
  return data;
}

// The sample's text with one thing put for another.
std::string Altered(const std::string& from, const std::string& to) {
  std::string text = FormatProfile(Sample());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ProfileJsonTest, WhatIsFormattedIsParsed) {
  const auto parsed = ParseProfile(FormatProfile(Sample()));
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->refused, 0u);
  EXPECT_EQ(FormatProfile(parsed->data), FormatProfile(Sample()));
  const DiskRecord& disk = parsed->data.disks.at("ext4 on disk 7");
  EXPECT_EQ(disk.bytes_per_second, 1.5e9);
  EXPECT_EQ(disk.chunk_bytes, 2u << 20);
  EXPECT_EQ(disk.depth, 8);
  EXPECT_TRUE(disk.direct);
  EXPECT_TRUE(disk.registered);
  EXPECT_EQ(disk.backend, "uring");
  EXPECT_EQ(parsed->data.compute.at("a CPU").rates.at("x"), 0.5);
  const TunedSettings& tuned = parsed->data.tuned.begin()->second;
  EXPECT_EQ(tuned.prefetch_depth, 4);
  EXPECT_EQ(tuned.io_depth, 16);
  EXPECT_EQ(tuned.backend, IoBackendKind::kPread);
  EXPECT_EQ(tuned.direct, DirectMode::kOff);
  EXPECT_EQ(tuned.tokens_per_second, 2.5);
}

TEST(ProfileJsonTest, WhatWasTunedOnADeviceIsKeptWithItsMemory) {
  ProfileData data = Sample();
  TunedKey key = data.tuned.begin()->first;
  key.device = "a card";
  key.vram_bytes = 123456789;
  data.tuned[key] = data.tuned.begin()->second;
  // The same with layers on the CPU, where a pass uploads nothing.
  key.cpu_layers = 3;
  data.tuned[key] = data.tuned.begin()->second;
  data.tuned[key].bytes_per_second = 0;
  const auto parsed = ParseProfile(FormatProfile(data));
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->refused, 0u);
  EXPECT_EQ(parsed->data.tuned.size(), 3u);
  ASSERT_TRUE(parsed->data.tuned.contains(key));
  EXPECT_EQ(parsed->data.tuned.at(key).bytes_per_second, 0);
}

TEST(ProfileJsonTest, AValueOutOfRangeCostsItsEntryAlone) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"depth\": 8", "\"depth\": 1000000"},
      {"\"depth\": 8", "\"depth\": 0"},
      {"\"depth\": 8", "\"depth\": 8.5"},
      {"\"depth\": 8", "\"depth\": 18446744073709551615"},
      {"\"depth\": 8", "\"depth\": \"8\""},
      {"\"depth\": 8", "\"width\": 8"},
      {"\"chunk_bytes\": 2097152", "\"chunk_bytes\": 2097153"},
      {"\"chunk_bytes\": 2097152", "\"chunk_bytes\": 1e300"},
      {"\"bytes_per_second\": 1500000000.0", "\"bytes_per_second\": -1"},
      {"\"bytes_per_second\": 1500000000.0", "\"bytes_per_second\": null"},
      {"\"direct\": true", "\"direct\": 1"},
      {"\"backend\": \"uring\"", "\"backend\": []"},
      {"\"x\": 0.5", "\"x\": 0"},
      {"\"prefetch_depth\": 4", "\"prefetch_depth\": 65"},
      {"\"io_depth\": 16", "\"io_depth\": -16"},
      {"\"backend\": \"pread\"", "\"backend\": \"tape\""},
      {"\"direct\": \"off\"", "\"direct\": \"maybe\""},
      {"\"ram_bytes\": 1073741824", "\"ram_bytes\": 0"},
      {"\"threads\": 2", "\"threads\": 4000"}};
  for (const auto& [from, to] : changes) {
    const auto parsed = ParseProfile(Altered(from, to));
    ASSERT_THAT(parsed, IsOk()) << to;
    EXPECT_EQ(parsed->refused, 1u) << to;
    EXPECT_NE(parsed->refusal, "") << to;
    EXPECT_EQ(parsed->data.size(), 2u) << to;
  }
}

TEST(ProfileJsonTest, TheRefusalNamesEntryFieldAndRange) {
  const auto parsed =
      ParseProfile(Altered("\"depth\": 8", "\"depth\": 1000000"));
  ASSERT_THAT(parsed, IsOk());
  EXPECT_THAT(parsed->refusal, AllOf(HasSubstr("ext4 on disk 7"),
                                     HasSubstr("depth"), HasSubstr("1..4096")));
}

TEST(ProfileJsonTest, WhatIsNoJsonIsDataLoss) {
  const std::string whole = FormatProfile(Sample());
  for (const std::string& text :
       {std::string(), std::string("x"), whole.substr(0, whole.size() / 2),
        std::string("[]"), std::string(100'000, '['), std::string(200, '\0')})
    EXPECT_THAT(ParseProfile(text), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ProfileJsonTest, JsonOfSomethingElseIsInvalidArgument) {
  for (const char* text : {"{}", R"({"format": "other", "version": 1})",
                           R"({"format": 1, "version": 1})"})
    EXPECT_THAT(ParseProfile(text),
                StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ProfileJsonTest, ANewerVersionIsFailedPrecondition) {
  EXPECT_THAT(
      ParseProfile(Altered("\"version\": 1", "\"version\": 2")),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("version 2")));
  EXPECT_THAT(ParseProfile(Altered("\"version\": 1", "\"version\": 0")),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ProfileJsonTest, SectionsOfAnotherShapeAreEmpty) {
  const auto parsed = ParseProfile(
      R"({"format": "coldstream-profile", "version": 1,
          "disks": 3, "compute": [1, 2], "tuned": {"a": 1}})");
  ASSERT_THAT(parsed, IsOk());
  EXPECT_TRUE(parsed->data.empty());
  EXPECT_EQ(parsed->refused, 3u);
}

TEST(ProfileJsonTest, TheOldestEntriesGoFirst) {
  ProfileData data;
  for (int i = 0; i < 100; ++i) {
    DiskRecord record = Sample().disks.begin()->second;
    record.date = "2026-12-02T00:00:" + std::to_string(100 + i);
    data.disks["disk " + std::to_string(i)] = record;
  }
  const auto parsed = ParseProfile(FormatProfile(data));
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->data.disks.size(), kMaxProfileEntries);
  EXPECT_TRUE(parsed->data.disks.contains("disk 99"));
  EXPECT_TRUE(parsed->data.disks.contains("disk 36"));
  EXPECT_FALSE(parsed->data.disks.contains("disk 35"));
}

TEST(ProfileJsonTest, TextThatIsNotUtf8IsWrittenAllTheSame) {
  ProfileData data;
  data.disks["a\xff\"b"] = Sample().disks.begin()->second;
  const auto parsed = ParseProfile(FormatProfile(data));
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->data.disks.size(), 1u);
}

}  // namespace
}  // namespace coldstream
