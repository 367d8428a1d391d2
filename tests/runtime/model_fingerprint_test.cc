#include "runtime/model_fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/profile_keys.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

class ModelFingerprintTest : public ::testing::Test {
 protected:
  std::string Of(const std::string& name) {
    const auto checkpoint = Checkpoint::Open(dir_.Path(name));
    EXPECT_THAT(checkpoint, IsOk());
    const auto print = ModelFingerprint(*checkpoint);
    EXPECT_THAT(print, IsOk());
    return print.value_or("");
  }
  std::string Of(const std::string& name, const TinyModelOptions& options) {
    EXPECT_THAT(WriteTinyModel(dir_.Path(name), options), IsOk());
    return Of(name);
  }
  TempDir dir_;
};

TEST_F(ModelFingerprintTest, IsTheSameForACopyElsewhere) {
  const std::string print = Of("a.gguf", {});
  std::filesystem::copy_file(dir_.Path("a.gguf"), dir_.Path("b.gguf"));
  EXPECT_EQ(Of("b.gguf"), print);
}

TEST_F(ModelFingerprintTest, DiffersByValuesAloneWhereTheKeyDoesNot) {
  const std::string print = Of("a.gguf", {});
  EXPECT_NE(Of("b.gguf", {.seed = 2}), print);
  EXPECT_EQ(ModelKey(*Checkpoint::Open(dir_.Path("a.gguf"))),
            ModelKey(*Checkpoint::Open(dir_.Path("b.gguf"))));
}

TEST_F(ModelFingerprintTest, DiffersByMetadataAlone) {
  const std::string print = Of("a.gguf", {});
  std::string bytes(std::filesystem::file_size(dir_.Path("a.gguf")), ' ');
  std::ifstream(dir_.Path("a.gguf"), std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  // Some text in the header, with one letter changed.
  const size_t at = bytes.find("general.architecture");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 8] = 'b';
  dir_.Write("b.gguf", bytes);
  const auto changed = Checkpoint::Open(dir_.Path("b.gguf"));
  ASSERT_THAT(changed, IsOk());
  EXPECT_NE(*ModelFingerprint(*changed), print);
}

}  // namespace
}  // namespace coldstream
