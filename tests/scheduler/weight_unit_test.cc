#include "scheduler/weight_unit.h"

#include <gtest/gtest.h>

#include <random>

namespace coldstream {
namespace {

WeightUnit UnitOf(std::vector<Extent> extents) {
  WeightUnit unit;
  unit.name = "unit";
  for (const Extent& extent : extents) unit.parts.push_back({extent, 0});
  return unit;
}

TEST(WeightUnitTest, NeighboursShareOneWindow) {
  WeightUnit unit = UnitOf({{0, 10000, 5000}, {0, 15008, 992}});
  const uint64_t sizes[] = {1 << 20};
  const uint32_t alignments[] = {4096};
  LayOutUnit(sizes, alignments, 0, &unit);
  ASSERT_EQ(unit.windows.size(), 1u);
  EXPECT_EQ(unit.windows[0].offset, 8192u);
  EXPECT_EQ(unit.windows[0].length, 8192u);
  EXPECT_EQ(unit.parts[0].offset, 10000u - 8192u);
  EXPECT_EQ(unit.parts[1].offset, 15008u - 8192u);
  EXPECT_EQ(unit.read_bytes, 8192u);
  EXPECT_EQ(unit.buffer_bytes, 8192u);
  EXPECT_EQ(unit.weight_bytes(), 5992u);
}

TEST(WeightUnitTest, FarPartsGetWindowsOfTheirOwn) {
  WeightUnit unit = UnitOf({{0, 500000, 100}, {0, 0, 100}, {1, 64, 4096}});
  const uint64_t sizes[] = {1 << 20, 1 << 20};
  const uint32_t alignments[] = {4096, 4096};
  LayOutUnit(sizes, alignments, 65536, &unit);
  ASSERT_EQ(unit.windows.size(), 3u);
  EXPECT_EQ(unit.parts[1].offset, 0u);
  EXPECT_EQ(unit.parts[0].offset, 4096u + 500000u % 4096u);
  EXPECT_EQ(unit.parts[2].offset, 8192u + 64u);
  EXPECT_EQ(unit.buffer_bytes, 16384u);
}

TEST(WeightUnitTest, AWindowEndsAtTheEndOfTheFileButHasRoomBeyond) {
  WeightUnit unit = UnitOf({{0, 4096, 1000}});
  const uint64_t sizes[] = {5096};
  const uint32_t alignments[] = {4096};
  LayOutUnit(sizes, alignments, 0, &unit);
  ASSERT_EQ(unit.windows.size(), 1u);
  EXPECT_EQ(unit.windows[0].length, 1000u);
  EXPECT_EQ(unit.read_bytes, 1000u);
  EXPECT_EQ(unit.buffer_bytes, 4096u);
}

// Whatever the parts, gaps and alignments: every part's bytes are inside one
// window and land where the part says.
TEST(WeightUnitTest, EveryPartLiesWhereItsBytesLand) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    const uint32_t alignment = 512u << (random() % 8);
    const uint64_t sizes[] = {1000003, 1 << 20};
    const uint32_t alignments[] = {alignment, 4096};
    WeightUnit unit;
    uint64_t at[2] = {random() % 10000, random() % 10000};
    const uint64_t parts = 1 + random() % 6;
    for (uint64_t i = 0; i < parts; ++i) {
      const int file = static_cast<int>(random() % 2);
      const uint64_t length = 1 + random() % 50000;
      unit.parts.push_back({{file, at[file], length}, 0});
      at[file] += length + random() % 100000;
    }
    LayOutUnit(sizes, alignments, random() % 100000, &unit);
    uint64_t covered = 0;
    for (const UnitPart& part : unit.parts) {
      int inside = 0;
      for (const UnitWindow& window : unit.windows) {
        if (window.file != part.extent.file ||
            part.extent.offset < window.offset ||
            part.extent.offset + part.extent.length >
                window.offset + window.length)
          continue;
        ++inside;
        EXPECT_EQ(part.offset - window.buffer_offset,
                  part.extent.offset - window.offset);
      }
      EXPECT_EQ(inside, 1);
    }
    for (const UnitWindow& window : unit.windows) {
      const uint64_t align = alignments[window.file];
      EXPECT_EQ(window.offset % align, 0u);
      EXPECT_EQ(window.buffer_offset % align, 0u);
      EXPECT_TRUE(window.length % align == 0 ||
                  window.offset + window.length == sizes[window.file]);
      EXPECT_LE(window.buffer_offset + window.length, unit.buffer_bytes);
      covered += window.length;
    }
    EXPECT_EQ(covered, unit.read_bytes);
  }
}

}  // namespace
}  // namespace coldstream
