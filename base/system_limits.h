// What this process may use: memory and CPUs, as the machine and its control
// groups (v1 and v2) allow, and what it has used.
//
// A container's limit is visible in neither sysconf nor the CPU affinity; it is
// the smallest limit of any group on the path from the process's group to the
// root. Paths are arguments so that tests can lay out a tree of their own.
// Source: Linux Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst.
#ifndef COLDSTREAM_BASE_SYSTEM_LIMITS_H_
#define COLDSTREAM_BASE_SYSTEM_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace coldstream {

struct SystemPaths {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

struct MemoryLimit {
  uint64_t bytes = 0;  // what this process may still grow to
  std::string source;  // "MemAvailable" or the limiting cgroup file
};

// The smallest of MemAvailable plus what this process already holds, and every
// memory limit on the cgroup path less what other processes of that group hold
// (their anonymous memory; their page cache can be dropped).
MemoryLimit AvailableMemory(const SystemPaths& paths = {});

// The smallest cgroup memory limit alone, or nullopt where there is none.
std::optional<MemoryLimit> CgroupMemoryLimit(const SystemPaths& paths = {});

// CPUs by quota (cpu.max or cpu.cfs_quota_us), smallest on the path; may be a
// fraction. nullopt: no quota.
std::optional<double> CgroupCpuQuota(const SystemPaths& paths = {});

// max(1, min(CPUs in the affinity mask, floor(quota))).
int DefaultThreads(const SystemPaths& paths = {});

// Resident set of this process now, and its highest so far, in bytes
// (VmRSS and VmHWM of /proc/self/status); 0 where /proc cannot be read.
uint64_t CurrentRssBytes(const SystemPaths& paths = {});
uint64_t PeakRssBytes(const SystemPaths& paths = {});

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_SYSTEM_LIMITS_H_
