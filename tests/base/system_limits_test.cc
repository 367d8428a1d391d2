#include "base/system_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_units.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::EndsWith;
using ::testing::Optional;

constexpr std::string_view kV1Unlimited = "9223372036854771712\n";

// A /proc and a /sys/fs/cgroup of our own.
class SystemLimits : public ::testing::Test {
 protected:
  void Group(std::string_view lines) { dir_.Write("proc/self/cgroup", lines); }
  void File(const std::string& path, std::string_view contents) {
    dir_.Write("cgroup/" + path, contents);
  }
  std::optional<uint64_t> Limit() {
    const auto limit = CgroupMemoryLimit(paths_);
    return limit ? std::optional(limit->bytes) : std::nullopt;
  }

  TempDir dir_;
  SystemPaths paths_{dir_.Path("proc"), dir_.Path("cgroup")};
};

TEST_F(SystemLimits, WithoutAnyFilesThereIsNoLimit) {
  EXPECT_EQ(Limit(), std::nullopt);
  EXPECT_EQ(CgroupCpuQuota(paths_), std::nullopt);
  EXPECT_EQ(CurrentRssBytes(paths_), 0u);
  EXPECT_EQ(PeakRssBytes(paths_), 0u);
  const MemoryLimit limit = AvailableMemory(paths_);
  EXPECT_EQ(limit.bytes, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(limit.source, "none");
}

TEST_F(SystemLimits, V2TakesTheSmallestOnThePathToTheRoot) {
  Group("0::/user.slice/app/worker\n");
  File("user.slice/memory.max", "3145728\n");
  File("user.slice/app/memory.max", "2097152\n");
  File("user.slice/app/worker/memory.max", "4194304\n");
  File("user.slice/other/memory.max", "1\n");
  const auto limit = CgroupMemoryLimit(paths_);
  ASSERT_TRUE(limit.has_value());
  EXPECT_EQ(limit->bytes, 2 * kMiB);
  EXPECT_THAT(limit->source, EndsWith("cgroup/user.slice/app/memory.max"));
}

TEST_F(SystemLimits, V2MaxIsNoLimit) {
  Group("0::/app\n");
  File("app/memory.max", "max\n");
  File("app/memory.high", "max\n");
  EXPECT_EQ(Limit(), std::nullopt);
}

TEST_F(SystemLimits, V2HighCountsToo) {
  Group("0::/app\n");
  File("app/memory.max", "4194304\n");
  File("app/memory.high", "1048576\n");
  EXPECT_THAT(Limit(), Optional(kMiB));
}

TEST_F(SystemLimits, ALimitOfTheRootIsSeen) {
  Group("0::/\n");
  File("memory.max", "1048576\n");
  EXPECT_THAT(Limit(), Optional(kMiB));
}

TEST_F(SystemLimits, InAContainerTheMountIsTheGroupThatProcNamesByItsHostPath) {
  Group("0::/system.slice/docker-0123.scope\n");
  File("memory.max", "5242880\n");
  EXPECT_THAT(Limit(), Optional(5 * kMiB));
}

TEST_F(SystemLimits, InAContainerAGroupBelowTheMountIsFoundByTheRestOfItsPath) {
  Group("0::/kubepods/pod7/container3/worker\n");
  File("memory.max", "5242880\n");
  File("worker/memory.max", "2097152\n");
  EXPECT_THAT(Limit(), Optional(2 * kMiB));
}

TEST_F(SystemLimits, ASiblingWhoseNameEndsThePathIsNotTakenForTheGroup) {
  Group("0::/a/b\n");
  File("a/b/memory.max", "4194304\n");
  File("b/memory.max", "1048576\n");
  EXPECT_THAT(Limit(), Optional(4 * kMiB));
}

TEST_F(SystemLimits, V1ReadsTheMemoryControllersHierarchy) {
  Group("5:memory:/jobs/7\n4:cpu,cpuacct:/other\n1:name=systemd:/x\n");
  File("memory/jobs/memory.limit_in_bytes", "3145728\n");
  File("memory/jobs/7/memory.limit_in_bytes", kV1Unlimited);
  File("memory/other/memory.limit_in_bytes", "1\n");
  EXPECT_THAT(Limit(), Optional(3 * kMiB));
}

TEST_F(SystemLimits, V1UnlimitedIsNoLimit) {
  Group("5:memory:/\n");
  File("memory/memory.limit_in_bytes", kV1Unlimited);
  File("memory/memory.stat",
       "cache 5\nhierarchical_memory_limit " + std::string(kV1Unlimited));
  EXPECT_EQ(Limit(), std::nullopt);
}

TEST_F(SystemLimits, V1ParentsOutsideAContainerAreKnownFromMemoryStat) {
  Group("5:memory:/docker/0123\n");
  File("memory/memory.limit_in_bytes", kV1Unlimited);
  File("memory/memory.stat", "cache 5\nhierarchical_memory_limit 6291456\n");
  EXPECT_THAT(Limit(), Optional(6 * kMiB));
}

TEST_F(SystemLimits, WithBothVersionsMountedTheSmallerWins) {
  Group("5:memory:/job\n0::/job\n");
  File("memory/job/memory.limit_in_bytes", "3145728\n");
  File("unified/job/memory.max", "2097152\n");
  EXPECT_THAT(Limit(), Optional(2 * kMiB));
}

TEST_F(SystemLimits, AGroupNameMayHoldColons) {
  Group("0::/a:b:c\n");
  File("a:b:c/memory.max", "1048576\n");
  EXPECT_THAT(Limit(), Optional(kMiB));
}

TEST_F(SystemLimits, BrokenFilesAreNoLimit) {
  Group("rubbish\n0:\n0::relative\n0::\n::\n5:memory:\n0::/app\n");
  File("app/memory.max", "");
  File("app/memory.high", "12 monkeys\n");
  File("app/cpu.max", "\n");
  EXPECT_EQ(Limit(), std::nullopt);
  EXPECT_EQ(CgroupCpuQuota(paths_), std::nullopt);
}

TEST_F(SystemLimits, AvailableIsMemAvailablePlusWhatTheProcessHolds) {
  dir_.Write("proc/meminfo",
             "MemTotal:  9000 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n");
  dir_.Write("proc/self/status",
             "VmHWM:\t 4000 kB\nVmRSS:\t 3000 kB\nRssAnon:\t 1024 kB\n");
  const MemoryLimit limit = AvailableMemory(paths_);
  EXPECT_EQ(limit.bytes, 3 * kMiB);
  EXPECT_EQ(limit.source, "MemAvailable");
  EXPECT_EQ(CurrentRssBytes(paths_), 3000u * 1024);
  EXPECT_EQ(PeakRssBytes(paths_), 4000u * 1024);
}

TEST_F(SystemLimits, AvailableIsTheGroupsLimitWhereThatIsSmaller) {
  dir_.Write("proc/meminfo", "MemAvailable:   1048576 kB\n");
  Group("0::/app\n");
  File("app/memory.max", "2097152\n");
  const MemoryLimit limit = AvailableMemory(paths_);
  EXPECT_EQ(limit.bytes, 2 * kMiB);
  EXPECT_THAT(limit.source, EndsWith("app/memory.max"));
}

TEST_F(SystemLimits, WhatOthersOfTheGroupHoldIsNotAvailable) {
  dir_.Write("proc/meminfo", "MemAvailable:   1048576 kB\n");
  dir_.Write("proc/self/status", "RssAnon:\t 1024 kB\n");
  Group("5:memory:/job\n0::/app\n");
  File("app/memory.max", "8388608\n");
  File("app/memory.stat", "anon 4194304\nfile 4194304\n");
  EXPECT_EQ(AvailableMemory(paths_).bytes, 5 * kMiB);
  File("memory/job/memory.limit_in_bytes", "7340032\n");
  File("memory/job/memory.stat", "rss 1\ntotal_rss 6291456\n");
  EXPECT_EQ(AvailableMemory(paths_).bytes, 2 * kMiB);
  File("memory/job/memory.stat", "total_rss 62914560\n");
  EXPECT_EQ(AvailableMemory(paths_).bytes, 0u);
}

TEST_F(SystemLimits, AFieldIsItsWholeName) {
  dir_.Write("proc/self/status", "VmRSSx:\t 9 kB\nVmRSS\nVmRSS:\t 7 kB\n");
  EXPECT_EQ(CurrentRssBytes(paths_), 7u * 1024);
}

TEST_F(SystemLimits, V2QuotaIsTheSmallestOnThePath) {
  Group("0::/pod/app\n");
  File("cpu.max", "max 100000\n");
  File("pod/cpu.max", "150000 100000\n");
  File("pod/app/cpu.max", "400000 100000\n");
  EXPECT_THAT(CgroupCpuQuota(paths_), Optional(1.5));
}

TEST_F(SystemLimits, V2QuotaOfMaxIsNone) {
  Group("0::/app\n");
  File("app/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpuQuota(paths_), std::nullopt);
}

TEST_F(SystemLimits, V1QuotaIsReadWhereverTheControllerIsMounted) {
  for (const std::string controllers : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
    const TempDir dir;
    const SystemPaths paths{dir.Path("proc"), dir.Path("cgroup")};
    dir.Write("proc/self/cgroup", "3:" + controllers + ":/job\n");
    const std::string group = "cgroup/" + controllers + "/job/";
    dir.Write(group + "cpu.cfs_quota_us", "250000\n");
    dir.Write(group + "cpu.cfs_period_us", "100000\n");
    EXPECT_THAT(CgroupCpuQuota(paths), Optional(2.5)) << controllers;
    dir.Write(group + "cpu.cfs_quota_us", "-1\n");
    EXPECT_EQ(CgroupCpuQuota(paths), std::nullopt) << controllers;
  }
}

TEST_F(SystemLimits, APeriodOfZeroIsIgnored) {
  Group("0::/app\n");
  File("app/cpu.max", "1000 0\n");
  EXPECT_EQ(CgroupCpuQuota(paths_), std::nullopt);
}

// Sets the CPUs this thread may use and puts the old ones back.
class ScopedAffinity {
 public:
  explicit ScopedAffinity(int cpus) {
    CPU_ZERO(&old_);
    ok_ = sched_getaffinity(0, sizeof(old_), &old_) == 0 &&
          CPU_COUNT(&old_) >= cpus;
    if (!ok_) return;
    cpu_set_t few;
    CPU_ZERO(&few);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&few) < cpus; ++cpu)
      if (CPU_ISSET(cpu, &old_)) CPU_SET(cpu, &few);
    ok_ = sched_setaffinity(0, sizeof(few), &few) == 0;
  }
  ~ScopedAffinity() {
    if (ok_) (void)sched_setaffinity(0, sizeof(old_), &old_);
  }
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;
  bool ok() const { return ok_; }

 private:
  cpu_set_t old_;
  bool ok_ = false;
};

TEST_F(SystemLimits, ThreadsAreTheAffinityWithoutAQuota) {
  const ScopedAffinity one(1);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(DefaultThreads(paths_), 1);
}

TEST_F(SystemLimits, ThreadsAreTheWholeCpusOfTheQuotaAndAtLeastOne) {
  const ScopedAffinity two(2);
  if (!two.ok()) GTEST_SKIP() << "needs two CPUs";
  EXPECT_EQ(DefaultThreads(paths_), 2);
  Group("0::/app\n");
  const std::vector<std::pair<std::string, int>> table = {
      {"190000 100000", 1}, {"200000 100000", 2}, {"765000 100000", 2},
      {"5000 100000", 1},   {"max 100000", 2},    {"9e300 1", 2}};
  for (const auto& [quota, threads] : table) {
    File("app/cpu.max", quota + "\n");
    EXPECT_EQ(DefaultThreads(paths_), threads) << quota;
  }
}

TEST(ThisProcess, HoldsMemoryAndItsPeakIsNoLess) {
  const uint64_t now = CurrentRssBytes();
  EXPECT_GT(now, kMiB / 2);
  EXPECT_GE(PeakRssBytes(), now);
  EXPECT_GT(AvailableMemory().bytes, 0u);
  EXPECT_GE(DefaultThreads(), 1);
}

}  // namespace
}  // namespace coldstream
