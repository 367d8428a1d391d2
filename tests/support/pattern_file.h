// A temporary file whose every byte is a known function of its offset, so that
// what a reader delivered can be checked wherever it came from.
//
// Lifetime: the file is removed with the object; descriptors opened before go
// on working.
#ifndef COLDSTREAM_TESTS_SUPPORT_PATTERN_FILE_H_
#define COLDSTREAM_TESTS_SUPPORT_PATTERN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/file.h"

namespace coldstream {

class PatternFile {
 public:
  // In the folder for temporary files, or in `folder`, which ends in a slash.
  explicit PatternFile(uint64_t size);
  PatternFile(uint64_t size, const std::string& folder);
  // Sparse: the pattern only in the last `tail` bytes, zeros before.
  static PatternFile Sparse(uint64_t size, uint64_t tail);
  ~PatternFile();
  PatternFile(PatternFile&& other) noexcept;
  PatternFile& operator=(PatternFile&&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // CHECKs that it opens.
  std::shared_ptr<File> Open(DirectMode direct) const;
  void Truncate(uint64_t size) const;

  // The first offset at which `got`, read from `offset` on, is not the file's;
  // offset + got.size() if there is none.
  static uint64_t FirstDifference(uint64_t offset,
                                  std::span<const std::byte> got);

 private:
  PatternFile(uint64_t size, uint64_t pattern_begin, const std::string& folder);

  std::string path_;
  uint64_t size_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_PATTERN_FILE_H_
