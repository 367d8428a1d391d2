// Bytes read, counted three ways: by our reader, by the kernel for this process
// and by the block devices of the model's files.
//
//   ReadCounter counter(files);
//   const ReadCounts before = counter.Now(engine.stats().bytes_from_disk);
//   ...
//   const ReadCounts read =
//       counter.Now(engine.stats().bytes_from_disk) - before;
//   read.Disagreement();   // 0.002: the counts differ by 0.2 %
//
// The reader's count is of what the kernel delivered, the other two of what
// came from a device: where the page cache answered they are smaller. A
// device's count is everybody's: where others read it too it is larger.
#ifndef COLDSTREAM_TOOLS_READ_COUNTS_H_
#define COLDSTREAM_TOOLS_READ_COUNTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "io/disk_identity.h"
#include "io/file.h"

namespace coldstream {

struct ReadCounts {
  uint64_t reader = 0;
  std::optional<uint64_t> process;  // nullopt: /proc does not tell
  std::optional<uint64_t> device;   // nullopt: no block device, or not known

  // The largest count over the smallest, less one; nullopt with fewer than two
  // counts or where one is 0 and another is not.
  std::optional<double> Disagreement() const;
};

ReadCounts operator-(const ReadCounts& after, const ReadCounts& before);
ReadCounts operator+(const ReadCounts& a, const ReadCounts& b);

class ReadCounter {
 public:
  explicit ReadCounter(const std::vector<std::shared_ptr<File>>& files,
                       DiskPaths paths = {});

  ReadCounts Now(uint64_t reader_bytes) const;
  // One per file, in the order of the files.
  const std::vector<DiskIdentity>& disks() const { return disks_; }

 private:
  DiskPaths paths_;
  std::vector<DiskIdentity> disks_;
  std::vector<BlockDevice> devices_;  // each once; empty if one is unknown
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_READ_COUNTS_H_
