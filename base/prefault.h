// Takes the pages of fresh memory ahead of whoever fills it.
//
// The kernel clears a page when it is first touched. Left to direct reads, that
// happens inside the read's submission, one page after another, and slows a
// fast disk; a thread that goes ahead of the reads keeps it out of their way.
// Contents are not changed, so the memory may be read into meanwhile.
// Best effort: does nothing before Linux 5.14 (MADV_POPULATE_WRITE).
#ifndef COLDSTREAM_BASE_PREFAULT_H_
#define COLDSTREAM_BASE_PREFAULT_H_

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>

namespace coldstream {

class Prefault {
 public:
  // Begins at once, on a thread of its own. `memory` is page-aligned and must
  // outlive this.
  explicit Prefault(std::span<std::byte> memory);
  // Ends where it is.
  ~Prefault();
  Prefault(const Prefault&) = delete;
  Prefault& operator=(const Prefault&) = delete;

 private:
  void Run(std::span<std::byte> memory);

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_PREFAULT_H_
