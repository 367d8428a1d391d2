// Logits as a file: little-endian float32 [n_tokens][n_vocab], no header.
//
// Written under a temporary name and renamed when complete, so that a file of
// that name is never half a result.
#ifndef COLDSTREAM_TOOLS_LOGITS_FILE_H_
#define COLDSTREAM_TOOLS_LOGITS_FILE_H_

#include <cstdio>
#include <span>
#include <string>

#include "base/status.h"

namespace coldstream {

class LogitsFile {
 public:
  // Errors: PermissionDenied or NotFound, naming the path.
  static StatusOr<LogitsFile> Create(const std::string& path);
  LogitsFile(LogitsFile&& other) noexcept;
  LogitsFile& operator=(LogitsFile&&) = delete;
  ~LogitsFile();  // an uncommitted file is removed

  // Errors: ResourceExhausted (disk full), Internal.
  Status Append(std::span<const float> row);
  Status Commit();

 private:
  LogitsFile() = default;
  Status WriteError(const char* what) const;

  std::string path_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_LOGITS_FILE_H_
