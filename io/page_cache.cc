#include "io/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace coldstream {
namespace {

// Not in Debian 12's headers. The number is the same on every architecture but
// alpha.
constexpr long kCachestat = 451;
struct CachestatRange {
  uint64_t offset = 0;
  uint64_t length = 0;  // 0: to the end
};
struct Cachestat {
  uint64_t cached = 0;
  uint64_t dirty = 0;
  uint64_t writeback = 0;
  uint64_t evicted = 0;
  uint64_t recently_evicted = 0;
};

// mincore answers for samples of 1 MiB, this many of them.
constexpr uint64_t kSampleBytes = uint64_t{1} << 20;
constexpr uint64_t kSamples = 512;

uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

Status CannotTell(const File& file, const char* what, int error) {
  return absl::UnavailableError(
      absl::StrCat(file.path(), ": ", what, ": ", std::strerror(error)));
}

// mincore says "all there" of a file that is not ours, cachestat EPERM.
bool MayAsk(const File& file) {
  struct stat info = {};
  if (fstat(file.buffered_fd(), &info) != 0) return false;
  const std::string name =
      absl::StrCat("/proc/self/fd/", std::to_string(file.buffered_fd()));
  return geteuid() == 0 || info.st_uid == geteuid() ||
         access(name.c_str(), W_OK) == 0;
}

struct Pages {
  uint64_t cached = 0;
  uint64_t all = 0;
};

// Adds the pages of [offset, offset + length).
Status AddSample(const File& file, uint64_t offset, uint64_t length,
                 Pages* pages) {
  void* mapping = mmap(nullptr, length, PROT_READ, MAP_SHARED,
                       file.buffered_fd(), static_cast<off_t>(offset));
  if (mapping == MAP_FAILED) return CannotTell(file, "mmap", errno);
  std::vector<unsigned char> present((length + PageBytes() - 1) / PageBytes());
  const int result = mincore(mapping, length, present.data());
  const int error = errno;
  (void)munmap(mapping, length);
  if (result != 0) return CannotTell(file, "mincore", error);
  pages->all += present.size();
  for (const unsigned char page : present) pages->cached += page & 1u;
  return absl::OkStatus();
}

}  // namespace

StatusOr<double> CachedFractionByCachestat(const File& file) {
  if (file.size() == 0) return 0.0;
  CachestatRange range;
  Cachestat stat;
  if (syscall(kCachestat, file.buffered_fd(), &range, &stat, 0u) != 0)
    return CannotTell(file, "cachestat", errno);
  const uint64_t pages = (file.size() + PageBytes() - 1) / PageBytes();
  return std::min(
      1.0, static_cast<double>(stat.cached) / static_cast<double>(pages));
}

StatusOr<double> CachedFractionByMincore(const File& file) {
  if (file.size() == 0) return 0.0;
  if (!MayAsk(file)) return CannotTell(file, "mincore", EPERM);
  // Every stride, or where the samples would touch, all of the file.
  const uint64_t stride = std::max(
      kSampleBytes, file.size() / kSamples / PageBytes() * PageBytes());
  Pages pages;
  for (uint64_t offset = 0; offset < file.size(); offset += stride) {
    RETURN_IF_ERROR(AddSample(
        file, offset, std::min(kSampleBytes, file.size() - offset), &pages));
  }
  return static_cast<double>(pages.cached) / static_cast<double>(pages.all);
}

StatusOr<double> CachedFraction(const File& file) {
  StatusOr<double> counted = CachedFractionByCachestat(file);
  if (counted.ok()) return counted;
  return CachedFractionByMincore(file);
}

Status DropFromPageCache(const File& file) {
  // Dirty pages stay, so a file just written is written back first.
  if (fdatasync(file.buffered_fd()) != 0)
    return CannotTell(file, "fdatasync", errno);
  const int error =
      posix_fadvise(file.buffered_fd(), 0, 0, POSIX_FADV_DONTNEED);
  if (error != 0) return CannotTell(file, "posix_fadvise", error);
  return absl::OkStatus();
}

Status FillPageCache(const File& file, const std::atomic<bool>* cancel) {
  constexpr uint64_t kBlock = uint64_t{4} << 20;
  std::vector<std::byte> block(std::min(kBlock, file.size()));
  for (uint64_t offset = 0; offset < file.size(); offset += block.size()) {
    if (cancel != nullptr && *cancel)
      return absl::CancelledError("filling the page cache");
    const uint64_t length = std::min(kBlock, file.size() - offset);
    RETURN_IF_ERROR(
        file.ReadExactly(offset, std::span(block).subspan(0, length)));
  }
  return absl::OkStatus();
}

}  // namespace coldstream
