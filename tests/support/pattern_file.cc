#include "tests/support/pattern_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

std::byte PatternAt(uint64_t offset) {
  uint64_t word = (offset / 8 + 1) * 0x9E3779B97F4A7C15u;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
  word ^= word >> 27;
  return static_cast<std::byte>(word >> (offset % 8 * 8));
}

}  // namespace

PatternFile::PatternFile(uint64_t size)
    : PatternFile(size, 0, ::testing::TempDir()) {}

PatternFile::PatternFile(uint64_t size, const std::string& folder)
    : PatternFile(size, 0, folder) {}

PatternFile PatternFile::Sparse(uint64_t size, uint64_t tail) {
  return PatternFile(size, size - tail, ::testing::TempDir());
}

PatternFile::PatternFile(uint64_t size, uint64_t pattern_begin,
                         const std::string& folder)
    : path_(folder + "coldstream_pattern_XXXXXX"), size_(size) {
  const int fd = mkostemp(path_.data(), O_CLOEXEC);
  CHECK(fd >= 0);
  CHECK(ftruncate(fd, static_cast<off_t>(size)) == 0);
  std::vector<std::byte> block;
  for (uint64_t at = pattern_begin; at < size; at += block.size()) {
    block.resize(std::min<uint64_t>(size - at, 1 << 20));
    for (size_t i = 0; i < block.size(); ++i) block[i] = PatternAt(at + i);
    CHECK(pwrite(fd, block.data(), block.size(), static_cast<off_t>(at)) ==
          static_cast<ssize_t>(block.size()));
  }
  CHECK(close(fd) == 0);
}

PatternFile::PatternFile(PatternFile&& other) noexcept
    : path_(std::exchange(other.path_, "")), size_(other.size_) {}

PatternFile::~PatternFile() {
  if (!path_.empty()) (void)unlink(path_.c_str());
}

std::shared_ptr<File> PatternFile::Open(DirectMode direct) const {
  auto file = File::Open(path_, direct);
  CHECK(file.ok());
  return *std::move(file);
}

void PatternFile::Truncate(uint64_t size) const {
  CHECK(truncate(path_.c_str(), static_cast<off_t>(size)) == 0);
}

uint64_t PatternFile::FirstDifference(uint64_t offset,
                                      std::span<const std::byte> got) {
  for (const std::byte byte : got) {
    if (byte != PatternAt(offset)) break;
    ++offset;
  }
  return offset;
}

}  // namespace coldstream
