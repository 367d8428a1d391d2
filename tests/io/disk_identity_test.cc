#include "io/disk_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/direct_alignment.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A file of the temporary folder, and a /sys and /proc that describe its
// device as each test likes.
class DiskIdentityTest : public ::testing::Test {
 protected:
  DiskIdentityTest()
      : file_(File::Open(dir_.Write("model", "weights"), DirectMode::kOff)
                  .value()) {
    struct stat info = {};
    CHECK(fstat(file_->buffered_fd(), &info) == 0);
    number_ = std::to_string(major(info.st_dev)) + ":" +
              std::to_string(minor(info.st_dev));
    on_device_ = major(info.st_dev) != 0;
  }

  void SetUp() override {
    if (!on_device_) GTEST_SKIP() << "the temporary folder is on no device";
  }

  // The temporary file's device is /sys/<folder>.
  void Link(const std::string& folder) {
    const std::string link = dir_.Path("sys/dev/block/" + number_);
    std::filesystem::create_directories(dir_.Path("sys/" + folder));
    std::filesystem::create_directories(dir_.Path("sys/dev/block"));
    std::filesystem::remove(link);
    std::filesystem::create_symlink("../../" + folder, link);
  }
  void LayOutNvme() {
    Link("devices/nvme0n1/nvme0n1p2");
    Set("nvme0n1p2/partition", "2\n");
    Set("nvme0n1p2/size", "2000\n");
    Set("size", "4000\n");
    Set("wwid", "eui.0025385\n");
    Set("device/model", "FAST DISK 1TB   \n");
    Set("device/serial", "  S4EWNX0\n");
    Set("queue/rotational", "0\n");
    Set("queue/logical_block_size", "512\n");
    Set("queue/max_sectors_kb", "128\n");
  }
  void Set(const std::string& fact, const std::string& value) {
    dir_.Write("sys/devices/nvme0n1/" + fact, value);
  }
  DiskIdentity Identify() const {
    return IdentifyDisk(*file_, {dir_.Path("proc"), dir_.Path("sys")});
  }

  TempDir dir_;
  std::shared_ptr<File> file_;
  std::string number_;
  bool on_device_ = false;
};

TEST_F(DiskIdentityTest, APartitionHasTheFactsOfItsDisk) {
  LayOutNvme();
  const DiskIdentity disk = Identify();
  EXPECT_EQ(disk.file_system, FileSystemName(file_->buffered_fd()));
  ASSERT_TRUE(disk.device.has_value());
  EXPECT_EQ(disk.device->Number(), number_);
  EXPECT_EQ(disk.device->name, "nvme0n1p2");
  EXPECT_EQ(disk.device->model, "FAST DISK 1TB");
  EXPECT_EQ(disk.device->serial, "S4EWNX0");
  EXPECT_EQ(disk.device->size, 2000u * 512);
  EXPECT_EQ(disk.device->logical_block, 512u);
  EXPECT_EQ(disk.device->max_request, 128u << 10);
  EXPECT_FALSE(disk.device->rotational);
  EXPECT_FALSE(disk.in_memory);
  EXPECT_THAT(disk.Describe(),
              AllOf(HasSubstr("nvme0n1p2"), HasSubstr("FAST DISK 1TB"),
                    HasSubstr("S4EWNX0"), HasSubstr(number_)));
}

TEST_F(DiskIdentityTest, TheKeyChangesWithEveryFactOfTheDevice) {
  LayOutNvme();
  const std::string key = Identify().Key();
  EXPECT_EQ(Identify().Key(), key);
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"nvme0n1p2/size", "2001"},      {"device/model", "SLOW DISK"},
      {"device/serial", "S4EWNX1"},    {"queue/rotational", "1"},
      {"queue/max_sectors_kb", "256"}, {"queue/logical_block_size", "4096"}};
  for (const auto& [fact, value] : changes) {
    LayOutNvme();
    Set(fact, value);
    EXPECT_NE(Identify().Key(), key) << fact;
  }
}

TEST_F(DiskIdentityTest, ADeviceWithoutASerialIsKnownByItsNumber) {
  Link("devices/vda");
  EXPECT_THAT(Identify().Key(), HasSubstr("disk " + number_ + ","));
  dir_.Write("sys/devices/vda/serial", "77\n");
  EXPECT_THAT(Identify().Key(), HasSubstr("disk 77,"));
}

TEST_F(DiskIdentityTest, AVendorsControlCharactersAreEscaped) {
  LayOutNvme();
  Set("device/serial", "a\x1b[2Jb\n");
  EXPECT_EQ(Identify().device->serial, "a\\x1b[2Jb");
}

TEST_F(DiskIdentityTest, ARamDiskIsInMemory) {
  Link("devices/zram0");
  EXPECT_TRUE(Identify().in_memory);
  Link("devices/ramses");
  EXPECT_FALSE(Identify().in_memory);
}

TEST_F(DiskIdentityTest, WithoutSysAndProcOnlyTheFileSystemIsKnown) {
  const DiskIdentity disk = Identify();
  EXPECT_FALSE(disk.device.has_value());
  EXPECT_EQ(disk.mount_source, "");
  EXPECT_THAT(disk.Key(), StartsWith(disk.file_system));
}

TEST_F(DiskIdentityTest, TheMountsSourceIsRead) {
  const std::string fd = std::to_string(file_->buffered_fd());
  dir_.Write("proc/self/fdinfo/" + fd, "pos:\t0\nflags:\t02\nmnt_id:\t31\n");
  dir_.Write("proc/self/mountinfo",
             "30 1 0:9 / /a rw,x - tmpfs none rw\n"
             "31 1 0:8 / /b rw,x shared:1 master:2 - nfs4 host:/my\\040models "
             "rw,vers=4\n");
  const DiskIdentity disk = Identify();
  EXPECT_EQ(disk.mount_source, "host:/my models");
  EXPECT_THAT(disk.Key(), HasSubstr("host:/my models"));
  EXPECT_THAT(disk.Describe(), HasSubstr("from host:/my models"));
}

TEST_F(DiskIdentityTest, TheRealSystemGivesAStableKey) {
  const DiskIdentity disk = IdentifyDisk(*file_);
  EXPECT_EQ(disk.Key(), IdentifyDisk(*file_).Key());
  EXPECT_NE(disk.file_system, "");
}

TEST(DiskIdentityTmpfsTest, TmpfsIsInMemoryWhateverItsMount) {
  const TempDir dir;
  const SmallDiskResult result = RunOnSmallDisk(dir.path(), 64 << 10, [&dir] {
    const auto file = File::Open(dir.Write("x", "y"), DirectMode::kOff);
    const DiskIdentity disk = IdentifyDisk(**file);
    EXPECT_TRUE(disk.in_memory);
    EXPECT_EQ(disk.file_system, "tmpfs");
    EXPECT_EQ(disk.Key(), "tmpfs");
    EXPECT_EQ(disk.Describe(), "tmpfs (in memory, no disk)");
    return !::testing::Test::HasFailure();
  });
  if (result == SmallDiskResult::kNotPossible)
    GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(result, SmallDiskResult::kHeld);
}

}  // namespace
}  // namespace coldstream
