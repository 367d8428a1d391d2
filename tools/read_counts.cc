#include "tools/read_counts.h"

#include <algorithm>
#include <utility>

#include "io/disk_counters.h"

namespace coldstream {
namespace {

using Count = std::optional<uint64_t>;

Count Add(Count a, Count b) { return a && b ? Count(*a + *b) : std::nullopt; }

Count Subtract(Count after, Count before) {
  if (!after || !before || *after < *before) return std::nullopt;
  return *after - *before;
}

}  // namespace

std::optional<double> ReadCounts::Disagreement() const {
  uint64_t least = reader;
  uint64_t most = reader;
  for (const Count& count : {process, device}) {
    if (!count) continue;
    least = std::min(least, *count);
    most = std::max(most, *count);
  }
  if (!process && !device) return std::nullopt;
  if (most == least) return 0.0;
  if (least == 0) return std::nullopt;
  return static_cast<double>(most) / static_cast<double>(least) - 1;
}

ReadCounts operator-(const ReadCounts& after, const ReadCounts& before) {
  return {after.reader - before.reader, Subtract(after.process, before.process),
          Subtract(after.device, before.device)};
}

ReadCounts operator+(const ReadCounts& a, const ReadCounts& b) {
  return {a.reader + b.reader, Add(a.process, b.process),
          Add(a.device, b.device)};
}

ReadCounter::ReadCounter(const std::vector<std::shared_ptr<File>>& files,
                         DiskPaths paths)
    : paths_(std::move(paths)) {
  bool all_known = true;
  for (const std::shared_ptr<File>& file : files) {
    disks_.push_back(IdentifyDisk(*file, paths_));
    const std::optional<BlockDevice>& device = disks_.back().device;
    if (!device) {
      all_known = false;
      continue;
    }
    const auto same = [&](const BlockDevice& other) {
      return other.Number() == device->Number();
    };
    if (std::none_of(devices_.begin(), devices_.end(), same))
      devices_.push_back(*device);
  }
  if (!all_known) devices_.clear();
}

ReadCounts ReadCounter::Now(uint64_t reader_bytes) const {
  ReadCounts counts;
  counts.reader = reader_bytes;
  const StatusOr<uint64_t> process = ProcessReadBytes(paths_);
  if (process.ok()) counts.process = *process;
  if (devices_.empty()) return counts;
  counts.device = 0;
  for (const BlockDevice& device : devices_) {
    const StatusOr<uint64_t> bytes = DeviceReadBytes(device, paths_);
    counts.device = bytes.ok() ? Add(counts.device, *bytes) : std::nullopt;
  }
  return counts;
}

}  // namespace coldstream
