// What the parser makes of right and of hostile headers. Every error must be
// one line that names the file.
#include "io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/gguf_bytes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kF32Id = 0;
constexpr uint32_t kQ4KId = 12;

class GgufTest : public ::testing::Test {
 protected:
  StatusOr<GgufFile> Parse(std::string_view bytes) {
    const std::string path = dir_.Write("m.gguf", bytes);
    auto file = File::Open(path, DirectMode::kOff);
    CHECK(file.ok());
    StatusOr<GgufFile> parsed = ParseGguf(*std::move(file));
    if (!parsed.ok()) {
      const std::string message = MessageOf(parsed.status());
      EXPECT_TRUE(message.starts_with(path + ": ")) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_LT(message.size(), 1000u) << message;
    }
    return parsed;
  }
  StatusOr<GgufFile> Parse(const GgufBytes& bytes) {
    return Parse(bytes.bytes());
  }

  // One f32 tensor of `dims` and type `type` in a file with plenty of data.
  StatusOr<GgufFile> ParseTensor(std::initializer_list<uint64_t> dims,
                                 uint32_t type, uint64_t offset = 0) {
    GgufBytes bytes;
    bytes.Header(1, 0).Tensor("blk.0.x", dims, type, offset).AlignTo(32);
    return Parse(bytes.Zeros(4096));
  }

  static auto Invalid(std::string_view text) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    HasSubstr(std::string(text)));
  }
  static auto Lost(std::string_view text) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(std::string(text)));
  }

  const TempDir dir_;
};

// One pair of every shape, two tensors, the second not padded at the end.
GgufBytes SmallModel(uint32_t version) {
  GgufBytes bytes;
  bytes.Header(2, 4, version);
  bytes.Key("general.architecture", GgufType::kString).String("llama");
  bytes.Key("llama.block_count", GgufType::kU32).U32(2);
  bytes.ArrayKey("tokens", GgufType::kString, 3)
      .String("a")
      .String("")
      .String("bc");
  bytes.ArrayKey("types", GgufType::kI32, 3).U32(1).U32(2).U32(3);
  bytes.Tensor("a", {32, 2}, kF32Id, 0).Tensor("b", {3}, kF32Id, 256);
  return bytes.AlignTo(32).Zeros(256 + 12);
}

TEST_F(GgufTest, ReadsVersions2And3) {
  for (const uint32_t version : {2u, 3u}) {
    const auto parsed = Parse(SmallModel(version));
    ASSERT_THAT(parsed, IsOk());
    EXPECT_EQ(parsed->version, version);
    EXPECT_THAT(parsed->warnings, IsEmpty());
    EXPECT_THAT(parsed->metadata.GetString("general.architecture"),
                IsOkAndHolds("llama"));
    EXPECT_THAT(parsed->metadata.GetInt("llama.block_count"), IsOkAndHolds(2));
    ASSERT_THAT(parsed->metadata.GetStrings("tokens"), IsOk());
    const StringArray& tokens = **parsed->metadata.GetStrings("tokens");
    ASSERT_EQ(tokens.size(), 3u);
    EXPECT_EQ(tokens[0], "a");
    EXPECT_EQ(tokens[1], "");
    EXPECT_EQ(tokens[2], "bc");
    ASSERT_THAT(parsed->tensors, SizeIs(2));
    EXPECT_THAT(parsed->tensors[0].shape, ElementsAre(32u, 2u));
    EXPECT_EQ(parsed->tensors[0].extent.offset, parsed->data_begin);
    EXPECT_EQ(parsed->tensors[1].extent.offset, parsed->data_begin + 256);
    EXPECT_EQ(parsed->tensors[1].extent.length, 12u);
  }
}

TEST_F(GgufTest, OpensAFileWithoutTensors) {
  GgufBytes bytes;
  bytes.Header(0, 1).Key("a", GgufType::kU8).U8(1);
  EXPECT_THAT(Parse(bytes), IsOk());
  EXPECT_THAT(Parse(GgufBytes().Header(0, 0)), IsOk());
  EXPECT_THAT(Parse(bytes.AlignTo(32)), IsOk());
}

TEST_F(GgufTest, SaysIncompleteWithBothSizesWhereverTheFileIsCut) {
  const std::string whole = SmallModel(3).bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(Parse(std::string_view(whole).substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("incomplete"),
                               HasSubstr(std::to_string(size)))))
        << size;
  }
  EXPECT_THAT(
      Parse(std::string_view(whole).substr(0, whole.size() - 1)),
      Lost("file is incomplete: header needs " + std::to_string(whole.size()) +
           " bytes, file has " + std::to_string(whole.size() - 1) +
           " (tensor b, f32, has 12 bytes at offset "));
}

TEST_F(GgufTest, WarnsOfBytesPastTheEnd) {
  const std::string whole = SmallModel(3).bytes();
  const auto parsed = Parse(whole + std::string(100, 'x'));
  ASSERT_THAT(parsed, IsOk());
  ASSERT_THAT(parsed->warnings, SizeIs(1));
  // 20 of them are what padding there would be.
  EXPECT_THAT(parsed->warnings[0],
              AllOf(HasSubstr("80 bytes past the end"),
                    HasSubstr("needs " + std::to_string(whole.size() + 20)),
                    HasSubstr("has " + std::to_string(whole.size() + 100))));
  EXPECT_THAT(Parse(whole + std::string(20, '\0'))->warnings, IsEmpty());
}

TEST_F(GgufTest, RefusesFilesGluedTogetherWithOrWithoutPadding) {
  const std::string whole = SmallModel(3).bytes();
  const std::string at = "another GGUF file begins at offset ";
  EXPECT_THAT(Parse(whole + whole), Invalid(at + std::to_string(whole.size())));
  EXPECT_THAT(Parse(whole + std::string(20, '\0') + whole),
              Invalid(at + std::to_string(whole.size() + 20)));
}

TEST_F(GgufTest, SaysWhatAFileIsThatIsNotGguf) {
  EXPECT_THAT(
      Parse("version https://git-lfs.github.com/spec/v1\n"
            "oid sha256:0000\nsize 4661211424\n"),
      Lost(
          "is a Git LFS pointer of 75 bytes, not the model (size 4661211424)"));
  EXPECT_THAT(Parse("<!DOCTYPE html><html>"), Invalid("a web page"));
  EXPECT_THAT(Parse("lmgg\x01\x02\x03\x04"), Invalid("older than GGUF"));
  EXPECT_THAT(Parse("tjgg\x01\x02\x03\x04"), Invalid("older than GGUF"));
  EXPECT_THAT(Parse("PK\x03\x04 and more"), Invalid("zip archive"));
  EXPECT_THAT(Parse(GgufBytes().U64(2).Text("{}")), Invalid("safetensors"));
  EXPECT_THAT(Parse("\x01\n\x02z and more"), Invalid("got \"\\x01\\n\\x02z\""));
  EXPECT_THAT(Parse(std::string(100, '\0')),
              Invalid("expected the magic \"GGUF\" at offset 0"));
}

TEST_F(GgufTest, RefusesOtherVersionsAndByteOrders) {
  EXPECT_THAT(Parse(GgufBytes().Header(0, 0, 1)), Invalid("is GGUF v1"));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 0, 4)), Invalid("is GGUF v4"));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 0, 0)), Invalid("is GGUF v0"));
  EXPECT_THAT(Parse(GgufBytes().Header(0, 0, 0x03000000)),
              Invalid("big-endian"));
  EXPECT_THAT(Parse(GgufBytes().Text("FUGG").U32(3).Zeros(16)),
              Invalid("big-endian"));
}

TEST_F(GgufTest, RefusesCountsThatTheFileCannotHold) {
  for (const uint64_t count :
       {uint64_t{100}, uint64_t{1} << 32, uint64_t{1} << 59, uint64_t{1} << 63,
        std::numeric_limits<uint64_t>::max()}) {
    const std::string number = std::to_string(count);
    EXPECT_THAT(Parse(GgufBytes().Header(count, 0).Zeros(100)),
                Lost(number + " entries of at least"));
    EXPECT_THAT(Parse(GgufBytes().Header(0, count).Zeros(100)),
                Lost(number + " entries of at least"));
    for (const GgufType type : {GgufType::kU8, GgufType::kF64, GgufType::kBool,
                                GgufType::kString, GgufType::kArray}) {
      GgufBytes bytes;
      bytes.Header(0, 1).ArrayKey("some.key", type, count).Zeros(20);
      EXPECT_THAT(Parse(bytes), StatusIs(absl::StatusCode::kDataLoss,
                                         AllOf(HasSubstr(number + " entries"),
                                               HasSubstr("some.key"))));
    }
  }
}

TEST_F(GgufTest, RefusesStringsThatTheFileCannotHold) {
  for (const uint64_t length :
       {uint64_t{1000}, uint64_t{1} << 40, uint64_t{1} << 63,
        std::numeric_limits<uint64_t>::max()}) {
    EXPECT_THAT(Parse(GgufBytes().Header(0, 1).U64(length).Zeros(40)),
                Lost("incomplete"));
    EXPECT_THAT(Parse(GgufBytes().Header(1, 0).U64(length).Zeros(40)),
                Lost("the name of a tensor"));
    GgufBytes value;
    value.Header(0, 1).Key("k", GgufType::kString).U64(length).Zeros(40);
    EXPECT_THAT(Parse(value), Lost("metadata key k at offset"));
  }
}

TEST_F(GgufTest, RefusesAnAlignmentThatIsNoPowerOfTwoOrOfAnotherType) {
  for (const uint32_t alignment : {0u, 3u, 48u, 1u << 31, ~0u}) {
    GgufBytes bytes;
    bytes.Header(0, 1).Key("general.alignment", GgufType::kU32).U32(alignment);
    EXPECT_THAT(Parse(bytes),
                Invalid("metadata key general.alignment: is " +
                        std::to_string(alignment) + ", expected a power"));
  }
  const std::vector<std::pair<GgufBytes, const char*>> other_types = {
      {GgufBytes().Type(GgufType::kU64).U64(32), "uint64"},
      {GgufBytes().Type(GgufType::kI32).U32(32), "int32"},
      {GgufBytes().Type(GgufType::kU8).U8(32), "uint8"},
      {GgufBytes().Type(GgufType::kString).String("32"), "string"},
      {GgufBytes().Type(GgufType::kArray).U32(4).U64(1).U32(32), "array"},
  };
  for (const auto& [value, name] : other_types) {
    EXPECT_THAT(
        Parse(GgufBytes()
                  .Header(0, 1)
                  .String("general.alignment")
                  .Text(value.bytes())),
        Invalid(std::string("stored as ") + name + ", expected uint32"));
  }
}

TEST_F(GgufTest, PlacesDataByTheFilesAlignment) {
  for (const uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    GgufBytes bytes;
    bytes.Header(1, 1).Key("general.alignment", GgufType::kU32).U32(alignment);
    bytes.Tensor("a", {4}, kF32Id, alignment).AlignTo(alignment);
    const auto parsed = Parse(bytes.Zeros(alignment + 16));
    ASSERT_THAT(parsed, IsOk());
    EXPECT_EQ(parsed->tensors[0].extent.offset, bytes.bytes().size() - 16);
    EXPECT_THAT(parsed->warnings, SizeIs(alignment < 8 ? 1 : 0));
  }
}

TEST_F(GgufTest, RefusesKeysAndTensorsThatAppearTwice) {
  GgufBytes keys;
  keys.Header(0, 2).Key("k", GgufType::kU8).U8(1).Key("k", GgufType::kU8).U8(1);
  EXPECT_THAT(Parse(keys), Invalid("metadata key k: appears twice"));
  GgufBytes tensors;
  tensors.Header(2, 0).Tensor("a", {4}, kF32Id, 0).Tensor("a", {4}, kF32Id, 32);
  EXPECT_THAT(Parse(tensors.AlignTo(32).Zeros(64)),
              Invalid("tensor a appears twice"));
}

TEST_F(GgufTest, RefusesEmptyAndOverlongNamesAndKeepsLongOnesWhole) {
  const std::string name(5000, 'n');
  GgufBytes bytes;
  bytes.Header(1, 1).Key(name, GgufType::kU8).U8(1);
  bytes.Tensor(name, {4}, kF32Id, 0).AlignTo(32).Zeros(16);
  const auto parsed = Parse(bytes);
  ASSERT_THAT(parsed, IsOk());
  EXPECT_TRUE(parsed->metadata.Has(name));
  EXPECT_EQ(parsed->tensors[0].name, name);

  const std::string overlong(70000, 'n');
  EXPECT_THAT(Parse(GgufBytes().Header(0, 1).Key("", GgufType::kU8).U16(1)),
              Invalid("its name is empty"));
  EXPECT_THAT(
      Parse(GgufBytes().Header(0, 1).Key(overlong, GgufType::kU8).U8(1)),
      Invalid("string of 70000 bytes at offset 24, expected at most 65535"));
  EXPECT_THAT(
      Parse(GgufBytes().Header(1, 0).Tensor("", {4}, kF32Id, 0).Zeros(64)),
      Invalid("its name is empty"));
  EXPECT_THAT(Parse(GgufBytes().Header(1, 0).Tensor(overlong, {4}, kF32Id, 0)),
              Invalid("70000"));
}

TEST_F(GgufTest, EscapesNamesInMessages) {
  GgufBytes bytes;
  bytes.Header(0, 1).Key("evil\n\x1b[31m\xff", GgufType::kBool).U8(2);
  EXPECT_THAT(Parse(bytes), Invalid("evil\\n\\x1b[31m\\xff: bool is 2"));
}

TEST_F(GgufTest, RefusesUnknownValueTypesAndBadBools) {
  GgufBytes type;
  type.Header(0, 1).String("k").U32(13).U64(0);
  EXPECT_THAT(Parse(type), Invalid("metadata key k: value type 13, expected "
                                   "0..12 (offset 33)"));
  GgufBytes entry;
  entry.Header(0, 1).String("k").U32(9).U32(77).U64(1).U64(0);
  EXPECT_THAT(Parse(entry), Invalid("value type 77"));
  GgufBytes flags;
  flags.Header(0, 1).ArrayKey("k", GgufType::kBool, 3).U8(0).U8(1).U8(7);
  EXPECT_THAT(Parse(flags), Invalid("array entry 7, expected at most 1"));
  GgufBytes large;
  large.Header(0, 1).ArrayKey("k", GgufType::kU64, 1).U64(~0ull);
  EXPECT_THAT(Parse(large), Invalid("array entry 18446744073709551615"));
}

TEST_F(GgufTest, PassesOverArraysOfArraysAndLimitsTheirDepth) {
  GgufBytes nested;
  nested.Header(0, 2).ArrayKey("nested", GgufType::kArray, 2);
  nested.Type(GgufType::kU32).U64(2).U32(1).U32(2);
  nested.Type(GgufType::kString).U64(1).String("x");
  nested.Key("after", GgufType::kU8).U8(9);
  const auto parsed = Parse(nested);
  ASSERT_THAT(parsed, IsOk());
  EXPECT_FALSE(parsed->metadata.Has("nested"));
  EXPECT_THAT(parsed->metadata.GetInt("after"), IsOkAndHolds(9));
  EXPECT_THAT(parsed->warnings, ElementsAre(HasSubstr("nested")));

  GgufBytes deep;
  deep.Header(0, 1).Key("deep", GgufType::kArray);
  for (int i = 0; i < 100000; ++i) deep.Type(GgufType::kArray).U64(1);
  EXPECT_THAT(Parse(deep), Invalid("metadata key deep: arrays nested deeper"));
}

TEST_F(GgufTest, RefusesShapesThatMakeNoSense) {
  EXPECT_THAT(ParseTensor({}, kF32Id), Invalid("0 dimensions, expected 1..4"));
  EXPECT_THAT(ParseTensor({1, 1, 1, 1, 1}, kF32Id), Invalid("5 dimensions"));
  EXPECT_THAT(ParseTensor({0}, kF32Id), Invalid("dimension 0 is 0"));
  EXPECT_THAT(ParseTensor({4, 0, 2}, kF32Id), Invalid("dimension 1 is 0"));
  EXPECT_THAT(ParseTensor({1ull << 32, 1ull << 32}, kF32Id),
              Invalid("blk.0.x: dimension 1 is 4294967296: more elements"));
  EXPECT_THAT(ParseTensor({1ull << 63}, kF32Id), Invalid("more elements"));
  EXPECT_THAT(ParseTensor({1ull << 62}, kF32Id), Invalid("more bytes"));
  EXPECT_THAT(ParseTensor({1ull << 61, 2}, kF32Id), Invalid("more bytes"));
  EXPECT_THAT(Parse(GgufBytes().Header(1, 0).String("a").U32(~0u).Zeros(64)),
              Invalid("4294967295 dimensions"));
}

TEST_F(GgufTest, RefusesTypesThatAreRemovedOrUnknownWithTheSupportedOnes) {
  for (const uint32_t id :
       {4u, 5u, 9u, 31u, 32u, 33u, 36u, 37u, 38u, 42u, 999u, ~0u}) {
    EXPECT_THAT(
        ParseTensor({256}, id),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("tensor blk.0.x: type " + std::to_string(id)),
                       HasSubstr("q4_k, q5_k"))))
        << id;
  }
  EXPECT_THAT(ParseTensor({256}, 31), Invalid("removed type q4_0_4_4"));
  for (const DTypeInfo& type : AllDTypes())
    EXPECT_THAT(ParseTensor({256}, static_cast<uint32_t>(type.type)), IsOk());
}

TEST_F(GgufTest, RefusesRowsThatAreNotWholeBlocks) {
  // 512 elements in all, but rows of 128.
  EXPECT_THAT(ParseTensor({128, 4}, kQ4KId),
              Invalid("row length 128, expected a multiple of 256 for type "
                      "q4_k"));
  EXPECT_THAT(ParseTensor({896}, kQ4KId), Invalid("row length 896"));
  EXPECT_THAT(ParseTensor({14464}, kQ4KId), Invalid("row length 14464"));
  EXPECT_THAT(ParseTensor({33}, 8), Invalid("row length 33"));
}

TEST_F(GgufTest, RefusesTensorDataOutsideTheFileOrOffItsAlignment) {
  EXPECT_THAT(ParseTensor({32}, kF32Id, uint64_t{1} << 40),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("header needs 10995116279"),
                             HasSubstr("file has 41"),
                             HasSubstr("tensor blk.0.x, f32, has 128 bytes"))));
  EXPECT_THAT(ParseTensor({32}, kF32Id, ~uint64_t{31}),
              Invalid("offset past 64 bits"));
  EXPECT_THAT(ParseTensor({32}, kF32Id, ~uint64_t{1023}), Lost("incomplete"));
  EXPECT_THAT(ParseTensor({32}, kF32Id, 33),
              Invalid("data offset 33, expected a multiple of the alignment"));
}

TEST_F(GgufTest, RefusesTensorsThatOverlap) {
  GgufBytes bytes;
  bytes.Header(3, 0).Tensor("a", {16}, kF32Id, 64);
  bytes.Tensor("b", {16}, kF32Id, 0).Tensor("c", {9}, kF32Id, 96);
  EXPECT_THAT(Parse(bytes.AlignTo(32).Zeros(256)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("tensor a (64 bytes at offset"),
                             HasSubstr("overlaps tensor c"))));
}

TEST_F(GgufTest, TakesTensorsInAnyOrderWithGapsBetween) {
  GgufBytes bytes;
  bytes.Header(2, 0).Tensor("a", {16}, kF32Id, 128);
  bytes.Tensor("b", {16}, kF32Id, 32);
  const auto parsed = Parse(bytes.AlignTo(32).Zeros(128 + 64));
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->tensors[0].name, "a");
}

TEST_F(GgufTest, ReadsA150000TokenVocabularyWellUnderASecond) {
  constexpr uint64_t kTokens = 150'000;
  GgufBytes bytes;
  bytes.Header(0, 4);
  bytes.ArrayKey("tokens", GgufType::kString, kTokens);
  for (uint64_t i = 0; i < kTokens; ++i)
    bytes.String("token" + std::to_string(i));
  bytes.ArrayKey("merges", GgufType::kString, 2 * kTokens);
  for (uint64_t i = 0; i < 2 * kTokens; ++i)
    bytes.String("merge" + std::to_string(i) + " with" + std::to_string(i));
  bytes.ArrayKey("types", GgufType::kI32, kTokens).Zeros(4 * kTokens);
  bytes.ArrayKey("scores", GgufType::kF32, kTokens).Zeros(4 * kTokens);

  const auto begin = std::chrono::steady_clock::now();
  const auto parsed = Parse(bytes);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  std::printf("%zu bytes of header in %.3f s\n", bytes.bytes().size(),
              took.count());
  ASSERT_THAT(parsed, IsOk());
  const StringArray& tokens = **parsed->metadata.GetStrings("tokens");
  ASSERT_EQ(tokens.size(), kTokens);
  EXPECT_EQ(tokens[149'999], "token149999");
  EXPECT_LT(parsed->metadata.memory_bytes(), 2 * bytes.bytes().size());
  EXPECT_LT(took.count(), 5) << "hangs, or reads it in a quadratic way";
}

}  // namespace
}  // namespace coldstream
