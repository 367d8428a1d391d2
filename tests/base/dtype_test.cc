#include "base/dtype.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>

namespace coldstream {
namespace {

struct Layout {
  uint32_t id;
  const char* name;
  uint32_t block_elements;
  uint32_t block_bytes;
};

// Written down a second time, field by field, from the GGUF specification: a
// scale is an f16 (2 bytes), K types have blocks of 256.
const Layout kLayouts[] = {
    {0, "f32", 1, 4},
    {1, "f16", 1, 2},
    {2, "q4_0", 32, 2 + 32 / 2},
    {3, "q4_1", 32, 2 + 2 + 32 / 2},
    {6, "q5_0", 32, 2 + 4 + 32 / 2},
    {7, "q5_1", 32, 2 + 2 + 4 + 32 / 2},
    {8, "q8_0", 32, 2 + 32},
    {10, "q2_k", 256, 256 / 16 + 256 / 4 + 2 + 2},
    {11, "q3_k", 256, 256 / 8 + 256 / 4 + 12 + 2},
    {12, "q4_k", 256, 2 + 2 + 12 + 256 / 2},
    {13, "q5_k", 256, 2 + 2 + 12 + 256 / 8 + 256 / 2},
    {14, "q6_k", 256, 256 / 2 + 256 / 4 + 256 / 16 + 2},
    {20, "iq4_nl", 32, 2 + 32 / 2},
    {23, "iq4_xs", 256, 2 + 2 + 256 / 64 + 256 / 2},
    {30, "bf16", 1, 2},
    {39, "mxfp4", 32, 1 + 32 / 2},
};

TEST(DType, EveryTypeHasTheLayoutOfTheSpecification) {
  ASSERT_EQ(AllDTypes().size(), std::size(kLayouts));
  for (const Layout& layout : kLayouts) {
    const std::optional<DType> type = DTypeFromId(layout.id);
    ASSERT_TRUE(type.has_value()) << layout.name;
    EXPECT_EQ(static_cast<uint32_t>(*type), layout.id);
    EXPECT_EQ(InfoOf(*type).type, *type);
    EXPECT_STREQ(InfoOf(*type).name, layout.name);
    EXPECT_EQ(InfoOf(*type).block_elements, layout.block_elements)
        << layout.name;
    EXPECT_EQ(InfoOf(*type).block_bytes, layout.block_bytes) << layout.name;
  }
}

TEST(DType, TheTableIsInOrderOfIdAndBelowTheLimit) {
  int last = -1;
  for (const DTypeInfo& info : AllDTypes()) {
    EXPECT_GT(static_cast<int>(info.type), last);
    last = static_cast<int>(info.type);
  }
  EXPECT_EQ(static_cast<size_t>(last) + 1, kDTypeIdLimit);
}

TEST(DType, IdsThatAreNotInTheTableAreUnknown) {
  std::set<uint32_t> known;
  for (const Layout& layout : kLayouts) known.insert(layout.id);
  for (uint32_t id = 0; id < 300; ++id)
    EXPECT_EQ(DTypeFromId(id).has_value(), known.contains(id)) << id;
  EXPECT_EQ(DTypeFromId(0xffffffffu), std::nullopt);
}

TEST(DType, NamesAreFoundInEitherCase) {
  for (const DTypeInfo& info : AllDTypes())
    EXPECT_EQ(DTypeFromName(info.name), info.type);
  EXPECT_EQ(DTypeFromName("Q4_K"), DType::kQ4_K);
  EXPECT_EQ(DTypeFromName("BF16"), DType::kBF16);
  EXPECT_EQ(DTypeFromName("q4"), std::nullopt);
  EXPECT_EQ(DTypeFromName(""), std::nullopt);
}

TEST(DType, TheListOfNamesHasThemAll) {
  const std::string names = SupportedDTypeNames();
  EXPECT_TRUE(names.starts_with("f32, f16, q4_0, "));
  EXPECT_TRUE(names.ends_with(", bf16, mxfp4"));
}

TEST(RowBytes, CountsWholeBlocks) {
  EXPECT_EQ(RowBytes(DType::kF32, 5), 20u);
  EXPECT_EQ(RowBytes(DType::kQ8_0, 64), 68u);
  EXPECT_EQ(RowBytes(DType::kQ6_K, 4096), 4096u / 256 * 210);
  EXPECT_EQ(RowBytes(DType::kQ4_K, 0), 0u);
  EXPECT_EQ(RowBytes(DType::kF16, uint64_t{1} << 40), uint64_t{1} << 41);
}

TEST(DTypeDeathTest, ATypeOutsideTheTableIsACallersBug) {
  EXPECT_DEATH(InfoOf(static_cast<DType>(4)), "CHECK failed");
  EXPECT_DEATH(InfoOf(static_cast<DType>(200)), "CHECK failed");
}

#ifndef NDEBUG
TEST(DTypeDeathTest, PartOfABlockIsACallersBug) {
  EXPECT_DEATH(RowBytes(DType::kQ8_0, 33), "CHECK failed");
}
#endif

}  // namespace
}  // namespace coldstream
