#include "base/system_limits.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace coldstream {
namespace {

// cgroup v1 writes "no limit" as the largest multiple of the page size.
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

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

// "VmRSS:   123 kB" and "MemAvailable: ..." lines, in bytes.
std::optional<uint64_t> ReadKilobyteField(const std::string& path,
                                          std::string_view field) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(field)) continue;
    std::istringstream words(line.substr(field.size() + 1));
    uint64_t kilobytes = 0;
    if (words >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

// The directories of this process's group and all its parents, nearest first,
// for a v1 controller or (controller empty) the unified v2 hierarchy. A
// container may see its own group mounted as the root while /proc names the
// host's path; directories that do not exist are harmless.
std::vector<std::string> GroupPath(const SystemPaths& paths,
                                   std::string_view controller) {
  std::ifstream file(paths.proc + "/self/cgroup");
  std::string line;
  std::string group = "/";
  bool found = false;
  while (std::getline(file, line)) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> names = absl::StrSplit(parts[1], ',');
    const bool match =
        controller.empty()
            ? parts[0] == "0"
            : std::find(names.begin(), names.end(), controller) != names.end();
    if (match) {
      group = parts[2];
      found = true;
    }
  }
  std::vector<std::string> directories;
  if (!found) return directories;
  std::vector<std::string> bases;
  if (controller.empty()) {
    bases = {paths.cgroup, paths.cgroup + "/unified"};
  } else {
    bases = {paths.cgroup + "/" + std::string(controller)};
    if (controller == "cpu") bases.push_back(paths.cgroup + "/cpu,cpuacct");
  }
  for (const std::string& base : bases) {
    std::string at = group;
    for (;;) {
      directories.push_back(base + (at == "/" ? "" : at));
      if (at.empty() || at == "/") break;
      at.resize(at.rfind('/'));
      if (at.empty()) at = "/";
    }
  }
  return directories;
}

}  // namespace

std::optional<MemoryLimit> CgroupMemoryLimit(const SystemPaths& paths) {
  std::optional<MemoryLimit> smallest;
  const auto consider = [&](const std::string& file) {
    const std::optional<uint64_t> limit = ReadLimit(file);
    if (limit && (!smallest || *limit < smallest->bytes))
      smallest = MemoryLimit{*limit, file};
  };
  for (const std::string& dir : GroupPath(paths, "")) {
    consider(dir + "/memory.max");
    consider(dir + "/memory.high");
  }
  for (const std::string& dir : GroupPath(paths, "memory"))
    consider(dir + "/memory.limit_in_bytes");
  return smallest;
}

MemoryLimit AvailableMemory(const SystemPaths& paths) {
  MemoryLimit limit{std::numeric_limits<uint64_t>::max(), "none"};
  if (const auto available =
          ReadKilobyteField(paths.proc + "/meminfo", "MemAvailable"))
    limit = {*available + CurrentRssBytes(paths), "MemAvailable"};
  if (const auto group = CgroupMemoryLimit(paths);
      group && group->bytes < limit.bytes)
    limit = *group;
  return limit;
}

std::optional<double> CgroupCpuQuota(const SystemPaths& paths) {
  std::optional<double> smallest;
  const auto consider = [&](double quota, double period) {
    if (quota <= 0 || period <= 0) return;
    const double cpus = quota / period;
    if (!smallest || cpus < *smallest) smallest = cpus;
  };
  for (const std::string& dir : GroupPath(paths, "")) {
    const std::optional<std::string> line = ReadFirstLine(dir + "/cpu.max");
    if (!line) continue;
    std::istringstream words(*line);
    double quota = 0, period = 0;
    if (words >> quota >> period) consider(quota, period);  // "max": no limit
  }
  for (const std::string& dir : GroupPath(paths, "cpu")) {
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
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    cpus = std::max(1, CPU_COUNT(&set));
  if (const std::optional<double> quota = CgroupCpuQuota(paths))
    cpus = std::min(cpus, std::max(1, static_cast<int>(std::floor(*quota))));
  return cpus;
}

uint64_t CurrentRssBytes(const SystemPaths& paths) {
  return ReadKilobyteField(paths.proc + "/self/status", "VmRSS").value_or(0);
}

uint64_t PeakRssBytes(const SystemPaths& paths) {
  return ReadKilobyteField(paths.proc + "/self/status", "VmHWM").value_or(0);
}

}  // namespace coldstream
