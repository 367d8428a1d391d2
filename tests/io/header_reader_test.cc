#include "io/header_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/support/gguf_bytes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HeaderReaderTest, ReadsNumbersAndStringsAcrossItsBuffer) {
  const TempDir dir;
  GgufBytes bytes;
  // 7 + 8 + 3 bytes a round: values lie across every boundary of the buffer.
  constexpr uint32_t kRounds = 50'000;
  for (uint32_t i = 0; i < kRounds; ++i)
    bytes.U8(static_cast<uint8_t>(i))
        .U16(static_cast<uint16_t>(i))
        .U32(i)
        .String("abc");
  auto file = File::Open(dir.Write("f", bytes.bytes()), DirectMode::kOff);
  ASSERT_THAT(file, IsOk());
  HeaderReader reader(**file);
  for (uint32_t i = 0; i < kRounds; ++i) {
    ASSERT_THAT(reader.Read<uint8_t>(), IsOkAndHolds(i % 256));
    ASSERT_THAT(reader.Read<uint16_t>(), IsOkAndHolds(i % 65536));
    ASSERT_THAT(reader.Read<uint32_t>(), IsOkAndHolds(i));
    ASSERT_THAT(reader.ReadString(10), IsOkAndHolds("abc"));
  }
  EXPECT_EQ(reader.position(), bytes.bytes().size());
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(HeaderReaderTest, ReadsAStringLargerThanItsBuffer) {
  const TempDir dir;
  std::string large(3 << 20, 'x');
  large[2'000'000] = 'y';
  GgufBytes bytes;
  bytes.U32(1).String(large).U32(2);
  auto file = File::Open(dir.Write("f", bytes.bytes()), DirectMode::kOff);
  ASSERT_THAT(file, IsOk());
  HeaderReader reader(**file);
  ASSERT_THAT(reader.Read<uint32_t>(), IsOkAndHolds(1u));
  const auto text = reader.ReadString(large.size());
  ASSERT_THAT(text, IsOk());
  EXPECT_TRUE(*text == large);
  EXPECT_THAT(reader.Read<uint32_t>(), IsOkAndHolds(2u));
}

TEST(HeaderReaderTest, SkipsWithoutKeeping) {
  const TempDir dir;
  GgufBytes bytes;
  bytes.Zeros(1'000'000).U32(7);
  auto file = File::Open(dir.Write("f", bytes.bytes()), DirectMode::kOff);
  ASSERT_THAT(file, IsOk());
  HeaderReader reader(**file);
  ASSERT_THAT(reader.Skip(1'000'000), IsOk());
  EXPECT_THAT(reader.Read<uint32_t>(), IsOkAndHolds(7u));
  EXPECT_THAT(reader.Skip(1), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(HeaderReaderTest, SaysWhatItWasReadingWhereTheFileEnds) {
  const TempDir dir;
  auto file = File::Open(dir.Write("f", "0123456789"), DirectMode::kOff);
  ASSERT_THAT(file, IsOk());
  HeaderReader reader(**file);
  ASSERT_THAT(reader.Skip(5), IsOk());
  reader.SetContext("tensor", "a\nb");
  EXPECT_THAT(reader.Read<uint64_t>(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("needs at least 13 bytes, file has 10"),
                             HasSubstr("reading tensor a\\nb at offset 5"))));
}

TEST(HeaderReaderTest, RefusesHeadersLargerThanAnyRealOne) {
  const TempDir dir;
  const std::string path = dir.Write("f", "");
  std::filesystem::resize_file(path, 2 * kMaxHeaderBytes);
  auto file = File::Open(path, DirectMode::kOff);
  ASSERT_THAT(file, IsOk());
  HeaderReader reader(**file);
  EXPECT_THAT(reader.CheckRoom(kMaxHeaderBytes / 4, 4), IsOk());
  const auto corrupt =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("corrupt"));
  EXPECT_THAT(reader.CheckRoom(kMaxHeaderBytes / 4 + 1, 4), corrupt);
  EXPECT_THAT(reader.ReadView(kMaxHeaderBytes + 1), corrupt);
}

}  // namespace
}  // namespace coldstream
