#include "io/gguf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::byte> RandomBytes(uint64_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Writes, and opens what was written.
StatusOr<Checkpoint> WriteAndOpen(GgufWriter* writer, const std::string& path,
                                  std::span<const std::byte> data) {
  RETURN_IF_ERROR(writer->Begin(path));
  RETURN_IF_ERROR(writer->Write(data));
  RETURN_IF_ERROR(writer->Finish());
  return Checkpoint::Open(path, {DirectMode::kOff});
}

TEST(GgufWriterTest, ReadsBackEveryKindOfScalar) {
  const TempDir dir;
  GgufWriter writer;
  ASSERT_THAT(writer.AddMetadata("u8", uint8_t{200}), IsOk());
  ASSERT_THAT(writer.AddMetadata("i8", int8_t{-100}), IsOk());
  ASSERT_THAT(writer.AddMetadata("u16", uint16_t{60000}), IsOk());
  ASSERT_THAT(writer.AddMetadata("i16", int16_t{-30000}), IsOk());
  ASSERT_THAT(writer.AddMetadata("u32", uint32_t{4000000000}), IsOk());
  ASSERT_THAT(writer.AddMetadata("i32", int32_t{-2000000000}), IsOk());
  ASSERT_THAT(writer.AddMetadata("f32", 0.1f), IsOk());
  ASSERT_THAT(writer.AddMetadata("bool", true), IsOk());
  ASSERT_THAT(writer.AddMetadata("string", "text"), IsOk());
  ASSERT_THAT(writer.AddMetadata("u64", std::numeric_limits<uint64_t>::max()),
              IsOk());
  ASSERT_THAT(writer.AddMetadata("i64", std::numeric_limits<int64_t>::min()),
              IsOk());
  ASSERT_THAT(writer.AddMetadata("f64", 0.1), IsOk());

  const auto checkpoint = WriteAndOpen(&writer, dir.Path("m.gguf"), {});
  ASSERT_THAT(checkpoint, IsOk());
  const Metadata& metadata = checkpoint->metadata();
  EXPECT_EQ(metadata.size(), 12u);
  EXPECT_THAT(metadata.GetInt("u8"), IsOkAndHolds(200));
  EXPECT_THAT(metadata.GetInt("i8"), IsOkAndHolds(-100));
  EXPECT_THAT(metadata.GetInt("u16"), IsOkAndHolds(60000));
  EXPECT_THAT(metadata.GetInt("i16"), IsOkAndHolds(-30000));
  EXPECT_THAT(metadata.GetInt("u32"), IsOkAndHolds(4000000000));
  EXPECT_THAT(metadata.GetInt("i32"), IsOkAndHolds(-2000000000));
  EXPECT_THAT(metadata.GetFloat("f32"), IsOkAndHolds(double{0.1f}));
  EXPECT_THAT(metadata.GetBool("bool"), IsOkAndHolds(true));
  EXPECT_THAT(metadata.GetString("string"), IsOkAndHolds("text"));
  EXPECT_EQ(*metadata.Find("u64"),
            MetadataValue(std::numeric_limits<uint64_t>::max()));
  EXPECT_THAT(metadata.GetInt("i64"),
              IsOkAndHolds(std::numeric_limits<int64_t>::min()));
  EXPECT_THAT(metadata.GetFloat("f64"), IsOkAndHolds(0.1));
}

TEST(GgufWriterTest, ReadsBackEveryKindOfArray) {
  const TempDir dir;
  StringArray words;
  words.Append("");
  words.Append(std::string("a\0b", 3));
  words.Append("\xE2\x96\x81the");
  GgufWriter writer;
  ASSERT_THAT(writer.AddMetadata("u8", std::vector<uint8_t>{0, 255}), IsOk());
  ASSERT_THAT(writer.AddMetadata("i8", std::vector<int8_t>{-128}), IsOk());
  ASSERT_THAT(writer.AddMetadata("u16", std::vector<uint16_t>{65535}), IsOk());
  ASSERT_THAT(writer.AddMetadata("i16", std::vector<int16_t>{-32768}), IsOk());
  ASSERT_THAT(writer.AddMetadata("u32", std::vector<uint32_t>{4000000000}),
              IsOk());
  ASSERT_THAT(writer.AddMetadata("i32", std::vector<int32_t>{-7, 7}), IsOk());
  ASSERT_THAT(writer.AddMetadata("f32", std::vector<float>{0.5f, -1}), IsOk());
  ASSERT_THAT(writer.AddMetadata("bool", std::vector<bool>{true, false, true}),
              IsOk());
  ASSERT_THAT(writer.AddMetadata("string", words), IsOk());
  ASSERT_THAT(writer.AddMetadata("u64", std::vector<uint64_t>{1ull << 62}),
              IsOk());
  ASSERT_THAT(writer.AddMetadata("i64", std::vector<int64_t>{-5}), IsOk());
  ASSERT_THAT(writer.AddMetadata("f64", std::vector<double>{0.25}), IsOk());
  ASSERT_THAT(writer.AddMetadata("none", std::vector<float>{}), IsOk());

  const auto checkpoint = WriteAndOpen(&writer, dir.Path("m.gguf"), {});
  ASSERT_THAT(checkpoint, IsOk());
  const Metadata& metadata = checkpoint->metadata();
  EXPECT_EQ(*metadata.Find("u8"), MetadataValue(IntArray{0, 255}));
  EXPECT_EQ(*metadata.Find("i8"), MetadataValue(IntArray{-128}));
  EXPECT_EQ(*metadata.Find("u16"), MetadataValue(IntArray{65535}));
  EXPECT_EQ(*metadata.Find("i16"), MetadataValue(IntArray{-32768}));
  EXPECT_EQ(*metadata.Find("u32"), MetadataValue(IntArray{4000000000}));
  EXPECT_EQ(*metadata.Find("i32"), MetadataValue(IntArray{-7, 7}));
  EXPECT_EQ(*metadata.Find("f32"), MetadataValue(FloatArray{0.5f, -1}));
  EXPECT_EQ(*metadata.Find("bool"), MetadataValue(IntArray{1, 0, 1}));
  EXPECT_EQ(*metadata.Find("string"), MetadataValue(words));
  EXPECT_EQ(*metadata.Find("u64"), MetadataValue(IntArray{1ll << 62}));
  EXPECT_EQ(*metadata.Find("i64"), MetadataValue(IntArray{-5}));
  EXPECT_EQ(*metadata.Find("f64"), MetadataValue(FloatArray{0.25}));
  EXPECT_EQ(*metadata.Find("none"), MetadataValue(IntArray{}));
  ASSERT_THAT(metadata.GetFloats("none"), IsOk());
  EXPECT_THAT(**metadata.GetFloats("none"), IsEmpty());
}

TEST(GgufWriterTest, ReadsBackTensorsOfEveryTypeByteForByte) {
  const TempDir dir;
  GgufWriter writer;
  uint64_t bytes = 0;
  for (const DTypeInfo& type : AllDTypes()) {
    const uint64_t cols = 3 * type.block_elements;
    ASSERT_THAT(writer.AddTensor(type.name, type.type, {cols, 5}), IsOk());
    bytes += RowBytes(type.type, cols) * 5;
  }
  const std::vector<std::byte> data = RandomBytes(bytes);
  const auto checkpoint = WriteAndOpen(&writer, dir.Path("m.gguf"), data);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->warnings(), IsEmpty());
  EXPECT_EQ(checkpoint->tensor_bytes(), bytes);
  EXPECT_EQ(checkpoint->files()[0]->size(), writer.file_bytes());
  ASSERT_EQ(checkpoint->tensors().size(), AllDTypes().size());

  uint64_t at = 0;
  for (const TensorInfo& tensor : checkpoint->tensors()) {
    const DTypeInfo& type = InfoOf(tensor.type);
    EXPECT_EQ(tensor.name, type.name);
    EXPECT_THAT(tensor.shape, ElementsAre(3 * type.block_elements, 5u));
    EXPECT_EQ(tensor.extent.offset % 32, 0u);
    std::vector<std::byte> got(tensor.extent.length);
    ASSERT_THAT(checkpoint->files()[0]->ReadExactly(tensor.extent.offset, got),
                IsOk());
    EXPECT_TRUE(std::equal(got.begin(), got.end(),
                           data.begin() + static_cast<ptrdiff_t>(at)))
        << tensor.name;
    at += got.size();
  }
}

TEST(GgufWriterTest, TakesTheDataInPiecesOfAnySize) {
  const TempDir dir;
  const std::vector<std::byte> data = RandomBytes(1000 * 4 + 7 * 4);
  for (const size_t piece : {1u, 13u, 4000u, 4028u}) {
    GgufWriter writer(4096);
    ASSERT_THAT(writer.AddTensor("a", DType::kF32, {1000}), IsOk());
    ASSERT_THAT(writer.AddTensor("b", DType::kF32, {7, 1, 1}), IsOk());
    const std::string path = dir.Path("m.gguf");
    ASSERT_THAT(writer.Begin(path), IsOk());
    for (size_t at = 0; at < data.size(); at += piece) {
      const size_t now = std::min(piece, data.size() - at);
      ASSERT_THAT(writer.Write(std::span(data).subspan(at, now)), IsOk());
    }
    ASSERT_THAT(writer.Finish(), IsOk());
    const auto checkpoint = Checkpoint::Open(path, {DirectMode::kOff});
    ASSERT_THAT(checkpoint, IsOk());
    const Extent b = checkpoint->Find("b")->extent;
    EXPECT_EQ(b.offset % 4096, 0u);
    std::vector<std::byte> got(b.length);
    ASSERT_THAT(checkpoint->files()[0]->ReadExactly(b.offset, got), IsOk());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), data.begin() + 4000));
  }
}

TEST(GgufWriterTest, RefusesWhatTheFormatCannotSay) {
  GgufWriter writer;
  ASSERT_THAT(writer.AddTensor("a", DType::kF32, {4}), IsOk());
  ASSERT_THAT(writer.AddMetadata("k", uint32_t{1}), IsOk());
  const auto invalid = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(writer.AddMetadata("k", uint32_t{1}), invalid("k: added twice"));
  EXPECT_THAT(writer.AddMetadata("", uint32_t{1}), invalid("name of 0 bytes"));
  EXPECT_THAT(writer.AddTensor("a", DType::kF32, {4}),
              invalid("a: added twice"));
  EXPECT_THAT(writer.AddTensor("b", DType::kQ4_K, {896, 2}),
              invalid("b: row length 896, expected a multiple of 256"));
  EXPECT_THAT(writer.AddTensor("b", DType::kF32, {4, 0}),
              invalid("b: a dimension is 0"));
  EXPECT_THAT(writer.AddTensor("b", DType::kF32, std::span<const uint64_t>{}),
              invalid("b: 0 dimensions"));
  EXPECT_THAT(writer.AddTensor("b", DType::kF32, {1, 1, 1, 1, 1}),
              invalid("b: 5 dimensions"));
  EXPECT_THAT(writer.AddTensor("b", DType::kF32, {1ull << 40, 1ull << 40}),
              invalid("b: more bytes"));
}

TEST(GgufWriterTest, FailsOnCallsOutOfOrderAndOnBytesTooManyOrTooFew) {
  const TempDir dir;
  const auto refused = [](const char* text) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(text));
  };
  const std::vector<std::byte> bytes(16);
  GgufWriter writer;
  ASSERT_THAT(writer.AddTensor("a", DType::kF32, {4}), IsOk());
  EXPECT_THAT(writer.Write(bytes), refused("before Begin"));
  EXPECT_THAT(writer.Finish(), refused("before Begin"));
  ASSERT_THAT(writer.Begin(dir.Path("m.gguf")), IsOk());
  EXPECT_THAT(writer.Begin(dir.Path("m.gguf")), refused("twice"));
  EXPECT_THAT(writer.AddTensor("b", DType::kF32, {4}), refused("b"));
  ASSERT_THAT(writer.Write(std::span(bytes).first(15)), IsOk());
  EXPECT_THAT(writer.Finish(), refused("tensor a: 15 of 16 bytes"));
  EXPECT_THAT(writer.Write(bytes), refused("16 bytes of tensor data, expected "
                                           "at most 1 more"));
  EXPECT_THAT(writer.Write(std::span(bytes).first(1)), IsOk());
  EXPECT_THAT(writer.Finish(), IsOk());
}

TEST(GgufWriterTest, LeavesNothingBehindWhenNotFinished) {
  const TempDir dir;
  {
    GgufWriter writer;
    ASSERT_THAT(writer.AddTensor("a", DType::kF32, {4}), IsOk());
    ASSERT_THAT(writer.Begin(dir.Path("m.gguf")), IsOk());
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace coldstream
