#include "tools/memory_ceiling.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/byte_units.h"
#include "base/host_memory.h"
#include "base/parallel.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Of the last-level caches: less, and the end of one pass feeds the next.
constexpr uint64_t kLeastCaches = 2;
constexpr uint64_t kWantedCaches = 4;
constexpr uint64_t kUnknownCache = 32 * kMiB;
constexpr uint64_t kLeastBuffer = 64 * kMiB;
constexpr double kSeconds = 0.25;
constexpr int kLeastPasses = 3;
constexpr int64_t kRangeBytes = int64_t{1} << 20;

std::string FirstWord(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Eight sums, so that loads and not additions are the limit.
uint64_t SumOf(const std::byte* data, size_t bytes) {
  std::array<uint64_t, 8> sums{};
  for (size_t at = 0; at + sizeof(sums) <= bytes; at += sizeof(sums)) {
    std::array<uint64_t, 8> line;
    std::memcpy(line.data(), data + at, sizeof(line));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += line[i];
  }
  uint64_t sum = 0;
  for (const uint64_t part : sums) sum += part;
  return sum;
}

double BestRate(Parallel* parallel, const HostMemory& buffer) {
  const auto size = static_cast<int64_t>(buffer.size());
  // Written once: pages never touched are all the same page of zeroes.
  parallel->For(size, kRangeBytes, [&](int64_t begin, int64_t end) {
    std::memset(buffer.data() + begin, 1, static_cast<size_t>(end - begin));
  });
  double best = 0;
  std::atomic<uint64_t> sum{0};  // so that the reads are not left out
  const Clock::time_point start = Clock::now();
  double elapsed = 0;
  for (int pass = 0; pass < kLeastPasses || elapsed < kSeconds; ++pass) {
    const Clock::time_point begin = Clock::now();
    parallel->For(size, kRangeBytes, [&](int64_t first, int64_t last) {
      sum += SumOf(buffer.data() + first, static_cast<size_t>(last - first));
    });
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    best = std::max(best, static_cast<double>(size) / seconds.count());
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return best;
}

}  // namespace

uint64_t LastLevelCacheBytes(const std::string& sys) {
  // By the CPUs that share it: one entry per cache.
  std::map<std::string, uint64_t> caches;
  std::error_code error;
  for (const fs::directory_entry& cpu :
       fs::directory_iterator(sys + "/devices/system/cpu", error)) {
    int best_level = 0;
    fs::path last;
    for (const fs::directory_entry& cache :
         fs::directory_iterator(cpu.path() / "cache", error)) {
      const std::string word = FirstWord(cache.path() / "level");
      const int level = word.size() == 1 ? word[0] - '0' : 0;
      if (level <= best_level) continue;
      best_level = level;
      last = cache.path();
    }
    if (best_level == 0) continue;
    const StatusOr<uint64_t> size = ParseByteSize(FirstWord(last / "size"));
    if (size.ok()) caches[FirstWord(last / "shared_cpu_list")] = *size;
  }
  uint64_t total = 0;
  for (const auto& [cpus, size] : caches) total += size;
  return total;
}

StatusOr<double> MeasureMemoryCeiling(int threads, uint64_t most_bytes) {
  const uint64_t told = LastLevelCacheBytes();
  const uint64_t caches = told > 0 ? told : kUnknownCache;
  const uint64_t wanted = std::max(kWantedCaches * caches, kLeastBuffer);
  const uint64_t bytes = AlignDown(std::min(wanted, most_bytes), kMiB);
  if (bytes < kLeastCaches * caches) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%s of memory are too few to measure its speed past %s of caches; it "
        "takes %s",
        FormatByteSize(bytes), FormatByteSize(caches),
        FormatByteSize(kLeastCaches * caches)));
  }
  ASSIGN_OR_RETURN(const HostMemory buffer,
                   HostMemory::Allocate(bytes, "measuring memory"));
  Parallel parallel(threads);
  return BestRate(&parallel, buffer);
}

}  // namespace coldstream
