#include "base/system_limits.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace coldstream {
namespace {

// cgroup v1 writes "no limit" as the largest multiple of the page size.
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

// The empty name stands for the unified v2 hierarchy.
constexpr std::string_view kUnified;

std::optional<std::string> ReadFirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<uint64_t> ReadLimit(const std::string& path) {
  const std::optional<std::string> line = ReadFirstLine(path);
  uint64_t value = 0;
  if (!line || !absl::SimpleAtoi(*line, &value)) return std::nullopt;
  if (value >= kUnlimited) return std::nullopt;
  return value;
}

// The number after `key`, which must be the whole first word of a line:
// "VmRSS:   123 kB" of /proc, "anon 123" of memory.stat.
std::optional<uint64_t> ReadField(const std::string& path,
                                  std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    uint64_t value = 0;
    if (words >> word && word == key && words >> value) return value;
  }
  return std::nullopt;
}

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// `base` + `group` and all its parents down to `base`, nearest first. In a
// container /proc may name the group as the host sees it while the mount starts
// at the container's own: then leading parts of the path are not there, and
// what is left of it is looked for.
void AppendDirectories(const std::string& base, std::string group,
                       std::vector<std::string>* directories) {
  while (!group.empty() && !IsDirectory(base + group)) {
    const size_t next = group.find('/', 1);
    group.erase(0, std::min(next, group.size()));
  }
  for (; !group.empty(); group.resize(group.rfind('/')))
    directories->push_back(base + group);
  directories->push_back(base);
}

// The directories of this process's group and all its parents for a controller
// of v1, or kUnified. Those that do not exist are harmless.
std::vector<std::string> GroupDirectories(const SystemPaths& paths,
                                          std::string_view controller) {
  std::vector<std::string> directories;
  std::ifstream file(paths.proc + "/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    // hierarchy-id:controller,controller:/path (a path may hold colons)
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !parts[2].starts_with('/')) continue;
    const std::string group = parts[2] == "/" ? "" : parts[2];
    if (controller == kUnified) {
      if (parts[0] != "0" || !parts[1].empty()) continue;
      AppendDirectories(paths.cgroup, group, &directories);
      AppendDirectories(paths.cgroup + "/unified", group, &directories);
      continue;
    }
    const std::vector<std::string> names = absl::StrSplit(parts[1], ',');
    if (std::find(names.begin(), names.end(), controller) == names.end())
      continue;
    AppendDirectories(paths.cgroup + "/" + std::string(controller), group,
                      &directories);
    if (names.size() > 1)  // mounted as "cpu,cpuacct", perhaps without a link
      AppendDirectories(paths.cgroup + "/" + parts[1], group, &directories);
  }
  return directories;
}

struct GroupLimit {
  uint64_t bytes = 0;
  uint64_t used = 0;  // memory of its processes that cannot be dropped
  std::string file;
};

std::vector<GroupLimit> MemoryLimits(const SystemPaths& paths) {
  std::vector<GroupLimit> limits;
  const auto consider = [&](std::optional<uint64_t> bytes, std::string file,
                            std::optional<uint64_t> used) {
    if (bytes) limits.push_back({*bytes, used.value_or(0), std::move(file)});
  };
  for (const std::string& dir : GroupDirectories(paths, kUnified)) {
    const auto used = ReadField(dir + "/memory.stat", "anon");
    for (const char* file : {"/memory.max", "/memory.high"})
      consider(ReadLimit(dir + file), dir + file, used);
  }
  for (const std::string& dir : GroupDirectories(paths, "memory")) {
    const std::string stat = dir + "/memory.stat";
    const auto used = ReadField(stat, "total_rss");
    const std::string file = dir + "/memory.limit_in_bytes";
    consider(ReadLimit(file), file, used);
    // Knows of parents that a container cannot see.
    const auto inherited = ReadField(stat, "hierarchical_memory_limit");
    if (inherited && *inherited < kUnlimited) consider(inherited, stat, used);
  }
  return limits;
}

// What this process holds that cannot be dropped: its own share of the groups'
// "used". Kernels before 4.5 give only the whole resident set.
uint64_t OwnAnonymousBytes(const SystemPaths& paths) {
  const auto kilobytes = ReadField(paths.proc + "/self/status", "RssAnon:");
  return kilobytes ? *kilobytes * 1024 : CurrentRssBytes(paths);
}

int CpusOfAffinity() {
  // The call fails while the mask is shorter than the kernel's.
  for (int bits = CPU_SETSIZE; bits <= 1 << 20; bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(bits));
    if (set == nullptr) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(bits));
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const bool too_short = !ok && errno == EINVAL;
    const int cpus = ok ? CPU_COUNT_S(bytes, set) : 1;
    CPU_FREE(set);
    if (!too_short) return std::max(1, cpus);
  }
  return 1;
}

}  // namespace

std::optional<MemoryLimit> CgroupMemoryLimit(const SystemPaths& paths) {
  std::optional<MemoryLimit> smallest;
  for (const GroupLimit& limit : MemoryLimits(paths)) {
    if (!smallest || limit.bytes < smallest->bytes)
      smallest = MemoryLimit{limit.bytes, limit.file};
  }
  return smallest;
}

MemoryLimit AvailableMemory(const SystemPaths& paths) {
  const uint64_t own = OwnAnonymousBytes(paths);
  MemoryLimit smallest{std::numeric_limits<uint64_t>::max(), "none"};
  if (const auto kilobytes =
          ReadField(paths.proc + "/meminfo", "MemAvailable:"))
    smallest = {*kilobytes * 1024 + own, "MemAvailable"};
  for (const GroupLimit& limit : MemoryLimits(paths)) {
    const uint64_t others = limit.used - std::min(limit.used, own);
    const uint64_t bytes = limit.bytes - std::min(limit.bytes, others);
    if (bytes < smallest.bytes) smallest = {bytes, limit.file};
  }
  return smallest;
}

std::optional<double> CgroupCpuQuota(const SystemPaths& paths) {
  std::optional<double> smallest;
  const auto consider = [&](double quota, double period) {
    if (!(quota > 0 && period > 0)) return;  // -1: no limit
    const double cpus = quota / period;
    if (!smallest || cpus < *smallest) smallest = cpus;
  };
  for (const std::string& dir : GroupDirectories(paths, kUnified)) {
    const std::optional<std::string> line = ReadFirstLine(dir + "/cpu.max");
    if (!line) continue;
    std::istringstream words(*line);
    double quota = 0, period = 0;
    if (words >> quota >> period) consider(quota, period);  // "max": no limit
  }
  for (const std::string& dir : GroupDirectories(paths, "cpu")) {
    const auto quota = ReadFirstLine(dir + "/cpu.cfs_quota_us");
    const auto period = ReadFirstLine(dir + "/cpu.cfs_period_us");
    double q = 0, p = 0;
    if (quota && period && absl::SimpleAtod(*quota, &q) &&
        absl::SimpleAtod(*period, &p))
      consider(q, p);
  }
  return smallest;
}

int DefaultThreads(const SystemPaths& paths) {
  const int cpus = CpusOfAffinity();
  const std::optional<double> quota = CgroupCpuQuota(paths);
  if (!quota || *quota >= cpus) return cpus;
  return std::max(1, static_cast<int>(std::floor(*quota)));
}

uint64_t CurrentRssBytes(const SystemPaths& paths) {
  return ReadField(paths.proc + "/self/status", "VmRSS:").value_or(0) * 1024;
}

uint64_t PeakRssBytes(const SystemPaths& paths) {
  return ReadField(paths.proc + "/self/status", "VmHWM:").value_or(0) * 1024;
}

}  // namespace coldstream
