#include "tools/model_files.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NamesIn(const TempDir& folder) {
  std::vector<std::string> names;
  const StatusOr<std::vector<std::string>> files = ModelFiles(folder.path());
  EXPECT_TRUE(files.ok()) << files.status();
  if (!files.ok()) return names;
  for (const std::string& path : *files)
    names.push_back(std::filesystem::path(path).filename().string());
  return names;
}

TEST(ModelFilesTest, AFileIsItself) {
  const TempDir folder;
  const std::string file = folder.Write("any.name", "");
  EXPECT_THAT(ModelFiles(file), IsOkAndHolds(ElementsAre(file)));
}

TEST(ModelFilesTest, AFolderGivesItsGgufFilesSortedAndNothingElse) {
  const TempDir folder;
  for (const char* name : {"b.gguf", "a.gguf", "a.txt", "gguf"})
    folder.Write(name, "");
  std::filesystem::create_directory(folder.Path("c.gguf"));
  EXPECT_THAT(NamesIn(folder), ElementsAre("a.gguf", "b.gguf"));
}

TEST(ModelFilesTest, ThePartsOfASplitModelAreOne) {
  const TempDir folder;
  for (const char* name :
       {"m-00002-of-00003.gguf", "m-00003-of-00003.gguf", "m.gguf",
        "n-00001-of-00002.gguf", "n-00002-of-00002.gguf",
        "m-00001-of-00002.gguf", "m-1-of-2.gguf", "m-2-of-2.gguf"})
    folder.Write(name, "");
  EXPECT_THAT(NamesIn(folder),
              ElementsAre("m-00001-of-00002.gguf", "m-00002-of-00003.gguf",
                          "m-1-of-2.gguf", "m-2-of-2.gguf", "m.gguf",
                          "n-00001-of-00002.gguf"));
}

TEST(ModelFilesTest, NothingThereIsNotFoundWithThePath) {
  const TempDir folder;
  for (const std::string& path : {folder.path(), folder.Path("missing.gguf")})
    EXPECT_THAT(ModelFiles(path),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
}

}  // namespace
}  // namespace coldstream
