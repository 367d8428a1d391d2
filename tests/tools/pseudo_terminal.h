// A terminal for tests: what is written to its descriptor is kept.
#ifndef COLDSTREAM_TESTS_TOOLS_PSEUDO_TERMINAL_H_
#define COLDSTREAM_TESTS_TOOLS_PSEUDO_TERMINAL_H_

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/check.h"

namespace coldstream {

class PseudoTerminal {
 public:
  explicit PseudoTerminal(unsigned short columns) {
    reader_ = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(reader_ >= 0 && grantpt(reader_) == 0 && unlockpt(reader_) == 0);
    std::array<char, 128> name{};
    CHECK(ptsname_r(reader_, name.data(), name.size()) == 0);
    path_ = name.data();
    // Kept open, so that reads do not fail between two writers.
    writer_ = open(path_.c_str(), O_RDWR | O_NOCTTY);
    CHECK(writer_ >= 0);
    winsize size = {};
    size.ws_col = columns;
    size.ws_row = 24;
    CHECK(ioctl(writer_, TIOCSWINSZ, &size) == 0);
  }
  ~PseudoTerminal() {
    close(writer_);
    close(reader_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  int descriptor() const { return writer_; }
  const std::string& path() const { return path_; }

  // Takes what was written up to now; waits for some, at most ten seconds.
  std::string Read(int wait_ms = 10'000) {
    std::string text;
    pollfd ready = {reader_, POLLIN, 0};
    while (poll(&ready, 1, text.empty() ? wait_ms : 0) > 0) {
      std::array<char, 4096> block{};
      const ssize_t got = read(reader_, block.data(), block.size());
      if (got <= 0) break;
      text.append(block.data(), static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int reader_ = -1;
  int writer_ = -1;
  std::string path_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_TOOLS_PSEUDO_TERMINAL_H_
