#include "runtime/profile.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "runtime/profile_json.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DiskRecord Disk(int depth) {
  return {.bytes_per_second = 1e9,
          .chunk_bytes = 1 << 20,
          .depth = depth,
          .direct = true,
          .registered = false,
          .backend = "uring",
          .date = ""};
}

TunedSettings Tuned(int prefetch_depth) {
  return {.prefetch_depth = prefetch_depth,
          .io_depth = 16,
          .chunk_bytes = 1 << 20,
          .backend = IoBackendKind::kAuto,
          .direct = DirectMode::kAuto,
          .bytes_per_second = 1e9,
          .tokens_per_second = 1,
          .date = ""};
}

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class ProfileTest : public ::testing::Test {
 protected:
  std::string Path() const {
    return dir_.Path("cache/coldstream/profile.json");
  }
  // Named by the user, or found in our own folder.
  Profile Load() const { return Profile::Load({Path(), "", false}); }
  Profile LoadOurs() const { return Profile::Load({Path(), "", true}); }
  void Write(const std::string& text) const {
    dir_.Write("cache/coldstream/profile.json", text);
  }
  // Nothing was written, and the note says why.
  void ExpectRefused(Profile profile, const std::string& why) const {
    const std::string before = Contents(Path());
    profile.PutDisk("d", Disk(4));
    const ProfileSave saved = profile.Save();
    EXPECT_FALSE(saved.written);
    EXPECT_THAT(saved.note, AllOf(HasSubstr(Path()), HasSubstr(why)));
    EXPECT_EQ(Contents(Path()), before);
  }

  TempDir dir_;
};

TEST_F(ProfileTest, AnAbsentProfileIsEmptyAndSaysNothing) {
  const Profile profile = Load();
  EXPECT_EQ(profile.warning(), "");
  EXPECT_TRUE(profile.data().empty());
  EXPECT_EQ(profile.FindDisk("d"), nullptr);
}

TEST_F(ProfileTest, WhatIsSavedIsLoaded) {
  Profile profile = Load();
  profile.PutDisk("d", Disk(4));
  profile.PutCompute("c", {.rates = {{"q4_k", 2.0}}, .date = ""});
  profile.PutTuned({"d", "m", 1 << 30, 2}, Tuned(3));
  const ProfileSave saved = profile.Save();
  EXPECT_TRUE(saved.written);
  EXPECT_EQ(saved.note, "");

  const Profile again = Load();
  EXPECT_EQ(again.warning(), "");
  ASSERT_NE(again.FindDisk("d"), nullptr);
  EXPECT_EQ(again.FindDisk("d")->depth, 4);
  EXPECT_EQ(again.FindDisk("d")->date.size(), 20u);
  ASSERT_NE(again.FindCompute("c"), nullptr);
  EXPECT_EQ(again.FindCompute("c")->rates.at("q4_k"), 2.0);
  ASSERT_NE(again.FindTuned({"d", "m", 1 << 30, 2}), nullptr);
  EXPECT_EQ(again.FindTuned({"d", "m", 1 << 30, 2})->prefetch_depth, 3);
}

TEST_F(ProfileTest, NothingPutWritesNothing) {
  EXPECT_TRUE(Load().Save().written);
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(ProfileTest, TheFolderIsForItsOwnerAndHoldsTheProfileAlone) {
  Profile profile = Load();
  profile.PutDisk("d", Disk(4));
  ASSERT_TRUE(profile.Save().written);
  struct stat info = {};
  ASSERT_EQ(stat(dir_.Path("cache/coldstream").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(dir_.Path("cache/coldstream")))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, ::testing::ElementsAre("profile.json"));
}

TEST_F(ProfileTest, ABudgetNearTheTunedOneFindsIt) {
  Profile profile = Load();
  profile.PutTuned({"d", "m", 1000 << 20, 2}, Tuned(3));
  profile.PutTuned({"d", "m", 1040 << 20, 2}, Tuned(4));
  EXPECT_EQ(profile.FindTuned({"d", "m", 1005 << 20, 2})->prefetch_depth, 3);
  EXPECT_EQ(profile.FindTuned({"d", "m", 1060 << 20, 2})->prefetch_depth, 4);
  EXPECT_EQ(profile.FindTuned({"d", "m", 1200 << 20, 2}), nullptr);
  EXPECT_EQ(profile.FindTuned({"d", "m", 1000 << 20, 3}), nullptr);
  EXPECT_EQ(profile.FindTuned({"d", "n", 1000 << 20, 2}), nullptr);
  EXPECT_EQ(profile.FindTuned({"e", "m", 1000 << 20, 2}), nullptr);
}

TEST_F(ProfileTest, WhatWasTunedOnADeviceIsForThatDeviceAndABudgetNear) {
  Profile profile = Load();
  profile.PutTuned({"d", "m", 1000 << 20, 2, "card", 500 << 20}, Tuned(3));
  const auto find = [&](const std::string& device, uint64_t vram) {
    return profile.FindTuned({"d", "m", 1000 << 20, 2, device, vram}) !=
           nullptr;
  };
  EXPECT_TRUE(find("card", 510 << 20));
  EXPECT_FALSE(find("card", 600 << 20));
  EXPECT_FALSE(find("another", 500 << 20));
  EXPECT_FALSE(find("", 0));
  const TunedKey split = {"d", "m", 1000 << 20, 2, "card", 500 << 20, 4};
  EXPECT_EQ(profile.FindTuned(split), nullptr);
}

TEST_F(ProfileTest, SaveKeepsWhatAnotherProcessWroteMeanwhile) {
  Profile first = Load();
  Profile second = Load();
  first.PutDisk("a", Disk(1));
  second.PutDisk("b", Disk(2));
  ASSERT_TRUE(first.Save().written);
  ASSERT_TRUE(second.Save().written);
  EXPECT_EQ(second.FindDisk("a")->depth, 1);
  EXPECT_EQ(Load().data().disks.size(), 2u);
}

TEST_F(ProfileTest, ManyProcessesLoseNothing) {
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      bool written = true;
      for (int round = 0; round < 5; ++round) {
        Profile profile = Load();
        profile.PutDisk(std::to_string(i) + "-" + std::to_string(round),
                        Disk(i + 1));
        written = written && profile.Save().written;
      }
      _exit(written ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Load().data().disks.size(), 5u * kProcesses);
}

TEST_F(ProfileTest, ADamagedOneIsIgnoredAndReplacedAloud) {
  Profile profile = Load();
  profile.PutDisk("d", Disk(4));
  ASSERT_TRUE(profile.Save().written);
  const std::string whole = Contents(Path());
  for (const std::string& damaged : {whole.substr(0, whole.size() - 20),
                                     std::string(), std::string(300, '\0')}) {
    Write(damaged);
    Profile loaded = Load();
    EXPECT_THAT(loaded.warning(),
                AllOf(HasSubstr(Path()), HasSubstr("not a whole JSON object")));
    EXPECT_TRUE(loaded.data().empty());
    loaded.PutDisk("e", Disk(5));
    const ProfileSave saved = loaded.Save();
    EXPECT_TRUE(saved.written);
    EXPECT_THAT(saved.note, HasSubstr("damaged"));
    EXPECT_EQ(Load().warning(), "");
  }
}

// The user may have named something dear.
TEST_F(ProfileTest, TextThatIsNotOursIsReplacedInOurFolderOnly) {
  Write("my shopping list");
  EXPECT_NE(Load().warning(), "");
  ExpectRefused(Load(), "left as it is");
  Profile ours = LoadOurs();
  ours.PutDisk("d", Disk(4));
  EXPECT_TRUE(ours.Save().written);
}

TEST_F(ProfileTest, AForeignOrNewerOneIsLeftAlone) {
  Write(R"({"format": "something else"})");
  EXPECT_THAT(Load().warning(), HasSubstr("something else"));
  ExpectRefused(LoadOurs(), "left as it is");
  Write(R"({"format": "coldstream-profile", "version": 99, "disks": {}})");
  EXPECT_THAT(Load().warning(), HasSubstr("version 99"));
  ExpectRefused(LoadOurs(), "newer");
}

TEST_F(ProfileTest, OneThatBecameNewerMeanwhileIsLeftAlone) {
  Profile profile = Load();
  Write(R"({"format": "coldstream-profile", "version": 99, "disks": {}})");
  ExpectRefused(std::move(profile), "newer");
}

TEST_F(ProfileTest, ATooLargeOneIsLeftAlone) {
  Write(std::string(3 << 20, ' '));
  EXPECT_THAT(Load().warning(), HasSubstr("larger"));
  ExpectRefused(LoadOurs(), "larger");
}

TEST_F(ProfileTest, AFolderOrAPipeIsLeftAlone) {
  std::filesystem::create_directories(Path());
  EXPECT_NE(Load().warning(), "");
  Profile profile = Load();
  profile.PutDisk("d", Disk(4));
  EXPECT_FALSE(profile.Save().written);
  std::filesystem::remove(Path());
  ASSERT_EQ(mkfifo(Path().c_str(), 0600), 0);
  EXPECT_THAT(Load().warning(), HasSubstr("no file"));
}

TEST_F(ProfileTest, AnEntryOutOfRangeIsRefusedAlone) {
  Profile profile = Load();
  profile.PutDisk("good", Disk(4));
  profile.PutDisk("bad", Disk(4097));
  ASSERT_TRUE(profile.Save().written);
  const Profile loaded = Load();
  EXPECT_THAT(loaded.warning(),
              AllOf(HasSubstr("part of the profile"), HasSubstr("bad: depth")));
  EXPECT_NE(loaded.FindDisk("good"), nullptr);
  EXPECT_EQ(loaded.FindDisk("bad"), nullptr);
}

TEST_F(ProfileTest, AFullDiskIsANote) {
  const SmallDiskResult result = RunOnSmallDisk(dir_.path(), 64 << 10, [this] {
    dir_.Write("fill", std::string(60 << 10, 'x'));
    Profile profile = Load();
    for (int i = 0; i < 50; ++i)
      profile.PutDisk(std::to_string(i) + std::string(200, 'k'), Disk(4));
    const ProfileSave saved = profile.Save();
    EXPECT_FALSE(saved.written);
    EXPECT_THAT(saved.note, HasSubstr("No space left"));
    return !HasFailure();
  });
  if (result == SmallDiskResult::kNotPossible)
    GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(result, SmallDiskResult::kHeld);
}

TEST_F(ProfileTest, AFolderThatCannotBeMadeIsANote) {
  dir_.Write("cache", "a file where a folder should be");
  Profile profile = Load();
  EXPECT_EQ(profile.warning(), "");
  profile.PutDisk("d", Disk(4));
  const ProfileSave saved = profile.Save();
  EXPECT_FALSE(saved.written);
  EXPECT_THAT(saved.note, HasSubstr("Not a directory"));
}

TEST_F(ProfileTest, AReadOnlyFolderIsANote) {
  const SmallDiskResult result = RunOnSmallDisk(dir_.path(), 64 << 10, [this] {
    std::filesystem::create_directories(dir_.Path("cache/coldstream"));
    CHECK(mount("tmpfs", dir_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY,
                nullptr) == 0);
    Profile profile = Load();
    profile.PutDisk("d", Disk(4));
    const ProfileSave saved = profile.Save();
    EXPECT_FALSE(saved.written);
    EXPECT_THAT(saved.note, HasSubstr("Read-only file system"));
    return !HasFailure();
  });
  if (result == SmallDiskResult::kNotPossible)
    GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(result, SmallDiskResult::kHeld);
}

TEST_F(ProfileTest, AFolderLockedForLongIsANote) {
  std::filesystem::create_directories(dir_.Path("cache/coldstream"));
  const int folder =
      open(dir_.Path("cache/coldstream").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(folder, LOCK_EX), 0);
  Profile profile = Load();
  profile.PutDisk("d", Disk(4));
  const ProfileSave saved = profile.Save();
  EXPECT_FALSE(saved.written);
  EXPECT_THAT(saved.note, HasSubstr("locked"));
  close(folder);
  EXPECT_TRUE(profile.Save().written);
}

// Sets a variable for a scope; null unsets it.
class WithVariable {
 public:
  WithVariable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    had_ = before != nullptr;
    if (value == nullptr) {
      unsetenv(name);
    } else {
      setenv(name, value, 1);
    }
  }
  ~WithVariable() {
    if (had_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

TEST(ProfilePlaceTest, TheVariablesAreTriedInOrder) {
  const WithVariable home("HOME", "/home/me");
  const WithVariable cache("XDG_CACHE_HOME", "/var/cache/me");
  {
    const WithVariable named("COLDSTREAM_PROFILE", "my.json");
    EXPECT_EQ(ProfilePlace::FromEnvironment().path, "my.json");
    EXPECT_FALSE(ProfilePlace::FromEnvironment().ours);
  }
  const WithVariable named("COLDSTREAM_PROFILE", nullptr);
  EXPECT_EQ(ProfilePlace::FromEnvironment().path,
            "/var/cache/me/coldstream/profile.json");
  EXPECT_TRUE(ProfilePlace::FromEnvironment().ours);
  const WithVariable relative("XDG_CACHE_HOME", "cache");
  EXPECT_EQ(ProfilePlace::FromEnvironment().path,
            "/home/me/.cache/coldstream/profile.json");
}

TEST(ProfilePlaceTest, OffAndNoHomeKeepNoProfile) {
  const WithVariable home("HOME", nullptr);
  const WithVariable cache("XDG_CACHE_HOME", nullptr);
  {
    const WithVariable named("COLDSTREAM_PROFILE", "off");
    Profile profile = Profile::Load(ProfilePlace::FromEnvironment());
    profile.PutDisk("d", Disk(4));
    EXPECT_FALSE(profile.Save().written);
    EXPECT_EQ(profile.Save().note, "");
    EXPECT_NE(profile.FindDisk("d"), nullptr);
  }
  const WithVariable named("COLDSTREAM_PROFILE", "");
  Profile profile = Profile::Load(ProfilePlace::FromEnvironment());
  EXPECT_THAT(profile.warning(), IsEmpty());
  profile.PutDisk("d", Disk(4));
  EXPECT_FALSE(profile.Save().written);
  EXPECT_THAT(profile.Save().note, HasSubstr("HOME"));
}

TEST_F(ProfileTest, APlainNameIsInTheWorkingFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  Profile profile = Profile::Load({"plain.json", "", false});
  profile.PutDisk("d", Disk(4));
  EXPECT_TRUE(profile.Save().written);
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(dir_.Path("plain.json")));
}

}  // namespace
}  // namespace coldstream
