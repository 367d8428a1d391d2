#include "io/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/gguf_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

struct PartSpec {
  std::string name;
  int no = 0;
  int count = 1;
  int total = 0;  // tensors of all parts
  std::vector<std::string> tensors;
  std::string architecture = {};  // none if empty
  uint32_t alignment = 32;
};

// Each tensor has four floats that are `no`.
std::string WritePart(const TempDir& dir, const PartSpec& spec) {
  GgufWriter writer(spec.alignment);
  std::vector<float> data;
  if (!spec.architecture.empty()) {
    EXPECT_THAT(writer.AddMetadata("general.architecture", spec.architecture),
                IsOk());
  }
  if (spec.count > 0) {
    EXPECT_THAT(writer.AddMetadata("split.no", static_cast<uint16_t>(spec.no)),
                IsOk());
    EXPECT_THAT(
        writer.AddMetadata("split.count", static_cast<uint16_t>(spec.count)),
        IsOk());
    EXPECT_THAT(writer.AddMetadata("split.tensors.count", spec.total), IsOk());
  }
  for (const std::string& tensor : spec.tensors) {
    EXPECT_THAT(writer.AddTensor(tensor, DType::kF32, {4}), IsOk());
    data.insert(data.end(), 4, static_cast<float>(spec.no));
  }
  std::string path = dir.Path(spec.name);
  fs::create_directories(fs::path(path).parent_path());
  EXPECT_THAT(writer.Begin(path), IsOk());
  EXPECT_THAT(writer.Write(std::as_bytes(std::span(data))), IsOk());
  EXPECT_THAT(writer.Finish(), IsOk());
  return path;
}

const PartSpec kFirst{"m-00001-of-00003.gguf", 0, 3, 3, {"a"}, "llama"};
const PartSpec kSecond{"m-00002-of-00003.gguf", 1, 3, 3, {"b"}, {}, 64};
const PartSpec kThird{"m-00003-of-00003.gguf", 2, 3, 3, {"c"}};

StatusOr<Checkpoint> Open(const std::string& path) {
  return Checkpoint::Open(path, {DirectMode::kOff});
}

// All three parts, in order, whose bytes are found where they should be.
void ExpectWhole(const StatusOr<Checkpoint>& checkpoint) {
  ASSERT_THAT(checkpoint, IsOk());
  ASSERT_EQ(checkpoint->files().size(), 3u);
  EXPECT_THAT(checkpoint->metadata().GetString("general.architecture"),
              IsOkAndHolds("llama"));
  ASSERT_EQ(checkpoint->tensors().size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const TensorInfo* tensor = checkpoint->Find(std::string(1, "abc"[i]));
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->extent.file, i);
    float values[4];
    ASSERT_THAT(
        checkpoint->files()[static_cast<size_t>(i)]->ReadExactly(
            tensor->extent.offset, std::as_writable_bytes(std::span(values))),
        IsOk());
    EXPECT_THAT(values, ::testing::Each(static_cast<float>(i)));
  }
}

TEST(SplitTest, ReadsPartNamesAndOnlyThose) {
  const auto name = ParseSplitName("a-b-00002-of-00010.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->prefix, "a-b");
  EXPECT_EQ(name->index, 1);
  EXPECT_EQ(name->count, 10);
  EXPECT_EQ(name->ToString(), "a-b-00002-of-00010.gguf");
  for (const char* other :
       {"model.gguf", "m-00002-of-00010.bin", "m-2-of-10.gguf",
        "m-00011-of-00010.gguf", "m-00000-of-00010.gguf", "00001-of-00002.gguf",
        "m-0000a-of-00010.gguf", "m_00001-of-00002.gguf", ".gguf", ""}) {
    EXPECT_FALSE(ParseSplitName(other).has_value()) << other;
  }
}

TEST(SplitTest, OpensTheWholeModelFromAnyPartAndFromTheFolder) {
  const TempDir dir;
  const std::vector<std::string> paths = {
      WritePart(dir, kFirst), WritePart(dir, kSecond), WritePart(dir, kThird)};
  for (const std::string& path : paths) ExpectWhole(Open(path));
  ExpectWhole(Open(dir.path()));
}

TEST(SplitTest, OpensAFirstPartThatHoldsOnlyMetadata) {
  const TempDir dir;
  WritePart(dir, {"m-00001-of-00002.gguf", 0, 2, 1, {}, "llama"});
  const std::string path =
      WritePart(dir, {"m-00002-of-00002.gguf", 1, 2, 1, {"a"}});
  const auto checkpoint = Open(path);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->tensors().size(), 1u);
  EXPECT_EQ(checkpoint->tensors()[0].extent.file, 1);
}

TEST(SplitTest, FindsPartsThroughLinksToDifferentFolders) {
  const TempDir dir;
  for (PartSpec spec : {kFirst, kSecond, kThird}) {
    const std::string link = dir.Path(spec.name);
    spec.name = "blob" + std::to_string(spec.no) + "/sha";
    fs::create_symlink(WritePart(dir, spec), link);
  }
  ExpectWhole(Open(dir.Path(kSecond.name)));
}

TEST(SplitTest, FindsPartsBesideTheTargetOfALink) {
  const TempDir dir;
  for (PartSpec spec : {kFirst, kSecond, kThird}) {
    spec.name = "store/" + spec.name;
    WritePart(dir, spec);
  }
  fs::create_symlink(dir.Path("store/" + kSecond.name), dir.Path(kSecond.name));
  ExpectWhole(Open(dir.Path(kSecond.name)));
}

TEST(SplitTest, ListsMissingParts) {
  const TempDir dir;
  const std::string path = WritePart(dir, kSecond);
  EXPECT_THAT(Open(path), StatusIs(absl::StatusCode::kNotFound,
                                   AllOf(HasSubstr("2 of 3 parts"),
                                         HasSubstr("m-00001-of-00003.gguf"),
                                         HasSubstr("m-00003-of-00003.gguf"))));
  EXPECT_THAT(Open(dir.path()), StatusIs(absl::StatusCode::kNotFound));
}

TEST(SplitTest, ListsOnlySomeOfVeryManyMissingParts) {
  const TempDir dir;
  const std::string path =
      WritePart(dir, {"m-00001-of-60000.gguf", 0, 60000, 1, {"a"}});
  const auto checkpoint = Open(path);
  ASSERT_THAT(checkpoint, StatusIs(absl::StatusCode::kNotFound,
                                   HasSubstr("59999 of 60000")));
  EXPECT_LT(MessageOf(checkpoint.status()).size(), 1000u);
}

TEST(SplitTest, RefusesARenamedPart) {
  const TempDir dir;
  PartSpec part = kSecond;
  part.name = "model.gguf";
  EXPECT_THAT(Open(WritePart(dir, part)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must end in -00002-of-00003.gguf")));
  part.name = kFirst.name;
  EXPECT_THAT(Open(WritePart(dir, part)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("named part 1 of 3"),
                             HasSubstr("part 2 of 3"))));
}

TEST(SplitTest, RefusesAPartOfAnotherModel) {
  const auto refused = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  const TempDir dir;
  const std::string path = WritePart(dir, kFirst);
  WritePart(dir, kSecond);

  PartSpec third = kThird;
  third.count = 0;
  WritePart(dir, third);
  EXPECT_THAT(Open(path), refused("m-00003-of-00003.gguf: is named like"));
  third = kThird;
  third.total = 9;
  WritePart(dir, third);
  EXPECT_THAT(Open(path), refused("split.tensors.count is 9, but 3 in"));
  third = kThird;
  third.architecture = "qwen2";
  WritePart(dir, third);
  EXPECT_THAT(Open(path), refused("general.architecture is \"qwen2\", expected "
                                  "\"llama\""));
  third = kThird;
  third.tensors = {"c", "d"};
  WritePart(dir, third);
  EXPECT_THAT(Open(path), refused("hold 4 tensors"));
  third = kThird;
  third.tensors = {"a"};
  WritePart(dir, third);
  EXPECT_THAT(Open(path),
              refused("m-00003-of-00003.gguf: tensor a is also in"));
}

TEST(SplitTest, TakesMetadataThatEveryPartRepeats) {
  const TempDir dir;
  WritePart(dir, kFirst);
  WritePart(dir, kSecond);
  PartSpec third = kThird;
  third.architecture = "llama";
  ExpectWhole(Open(WritePart(dir, third)));
}

TEST(SplitTest, OpensASinglePartOfOneAsAWholeModel) {
  const TempDir dir;
  EXPECT_THAT(Open(WritePart(dir, {"m-00001-of-00001.gguf", 0, 1, 1, {"a"}})),
              IsOk());
  EXPECT_THAT(Open(WritePart(dir, {"n-00001-of-00001.gguf", 0, 0, 0, {"a"}})),
              IsOk());
  EXPECT_THAT(Open(WritePart(dir, {"other.gguf", 0, 1, 1, {"a"}})), IsOk());
}

TEST(SplitTest, RefusesNumbersThatMakeNoSense) {
  const TempDir dir;
  EXPECT_THAT(Open(WritePart(dir, {"m-00001-of-00002.gguf", 2, 2, 1, {"a"}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("split.no is 2, expected 0..1")));
}

TEST(SplitTest, RefusesPartsGluedTogether) {
  const TempDir dir;
  std::string glued;
  for (const PartSpec& spec : {kFirst, kSecond, kThird}) {
    std::ifstream part(WritePart(dir, spec), std::ios::binary);
    glued.append(std::istreambuf_iterator<char>(part), {});
  }
  EXPECT_THAT(Open(dir.Write("glued.gguf", glued)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("glued together")));
}

TEST(SplitTest, NamesThePartThatIsIncomplete) {
  const TempDir dir;
  const std::string path = WritePart(dir, kFirst);
  WritePart(dir, kSecond);
  const std::string third = WritePart(dir, kThird);
  fs::resize_file(third, fs::file_size(third) - 32);
  EXPECT_THAT(Open(path),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(third), HasSubstr("incomplete"))));
}

TEST(SplitTest, OpensTheOneModelOfAFolderAndNamesSeveral) {
  const TempDir dir;
  dir.Write("readme.txt", "not a model");
  EXPECT_THAT(Open(dir.path()), StatusIs(absl::StatusCode::kNotFound,
                                         HasSubstr("no .gguf file")));
  WritePart(dir, {"one.gguf", 0, 0, 0, {"a"}});
  EXPECT_THAT(Open(dir.path()), IsOk());
  WritePart(dir, {"two.gguf", 0, 0, 0, {"a"}});
  EXPECT_THAT(Open(dir.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("holds 2 models"),
                             HasSubstr("one.gguf, two.gguf"))));
}

}  // namespace
}  // namespace coldstream
