// Reads a file or a pipe line by line, with bounded memory.
//
//   ASSIGN_OR_RETURN(auto lines, LineReader::Open("in.jsonl", {}));
//   LineReader::Line line;
//   while (*(more = lines->Next(&line))) Use(line.text);
//
// A line ends with \n, \r\n or the end of the file. Of one longer than the
// limit only the beginning is kept; the rest is read and dropped.
// Errors: NotFound, PermissionDenied, InvalidArgument (a folder), Unavailable
// (a read failed), Cancelled (see `cancel`); all with the path.
// Thread-safety: none; one thread at a time.
#ifndef COLDSTREAM_TOOLS_LINE_READER_H_
#define COLDSTREAM_TOOLS_LINE_READER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace coldstream {

struct LineReaderOptions {
  size_t most_bytes = size_t{4} << 20;  // of a line
  // Looked at where a read is interrupted by a signal. May be null.
  const std::atomic<bool>* cancel = nullptr;
};

class LineReader {
 public:
  struct Line {
    std::string_view text;    // without its end; valid until the next Next
    int64_t number = 0;       // from 1
    uint64_t offset = 0;      // of its first byte in the file
    uint64_t bytes = 0;       // without its end; more than text.size() if cut
    bool terminated = false;  // there was a line end
    bool cut() const { return bytes > text.size(); }
  };

  // "-" is standard input.
  static StatusOr<std::unique_ptr<LineReader>> Open(
      const std::string& path, const LineReaderOptions& options);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // False at the end. An empty file has no line; "a\n" has one.
  StatusOr<bool> Next(Line* line);

  uint64_t size() const { return size_; }        // of a regular file, else 0
  uint64_t position() const { return offset_; }  // behind the last line given

 private:
  LineReader(std::string path, const LineReaderOptions& options)
      : path_(std::move(path)), options_(options) {}

  Status OpenFile();
  // False at the end of the file.
  StatusOr<bool> Fill();
  Status ErrorOf(const char* what, int error) const;

  const std::string path_;
  const LineReaderOptions options_;
  int fd_ = -1;
  uint64_t size_ = 0;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what is in the buffer and not given out
  size_t end_ = 0;
  std::string line_;
  int64_t number_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_LINE_READER_H_
