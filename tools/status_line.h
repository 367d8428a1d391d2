// One line on the terminal that says how a long command is getting on,
// rewritten in place about five times a second by a thread of its own.
//
//   StatusLine status(options);
//   status.Begin(work, ...);      // what the call below is to do
//   session->Generate(...);       // the line appears after a second
//   status.Hide();                // before anything else is printed
//
// Nothing is written where the descriptor is no terminal or TERM says that it
// cannot move its cursor (unset, dumb); there is no thread then either. The
// line is as wide as the terminal at most. It is gone when Hide returns, and
// when the object ends.
// Thread-safety: Begin and Hide from any thread.
// Lifetime: whatever options.stats looks at must outlive the line.
#ifndef COLDSTREAM_TOOLS_STATUS_LINE_H_
#define COLDSTREAM_TOOLS_STATUS_LINE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/engine.h"
#include "tools/status_meter.h"

namespace coldstream {

// Whether a status line would be seen there.
bool CanShowStatus(int descriptor);

class StatusLine {
 public:
  using Duration = std::chrono::steady_clock::duration;
  struct Options {
    int descriptor = 2;                  // stderr
    std::function<EngineStats()> stats;  // called from the line's thread
    int64_t units_per_pass = 1;
    std::optional<double> disk_ceiling = std::nullopt;  // bytes per second
    Duration delay = std::chrono::seconds(1);  // from Create to the first line
    Duration interval = std::chrono::milliseconds(200);
  };
  explicit StatusLine(const Options& options);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // From now on the line tells of `work`.
  void Begin(const StatusWork& work);
  // Clears the line; until the next Begin the terminal is the caller's.
  void Hide();

 private:
  void Run();
  void Draw();  // with mutex_ held, and so below
  void Clear();
  double Now() const;

  const Options options_;
  const bool enabled_;
  const std::chrono::steady_clock::time_point created_;

  // std::mutex, because TSan cannot see into Debian's absl::Mutex.
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  StatusMeter meter_;
  bool active_ = false;  // between Begin and Hide
  bool shown_ = false;   // a line stands on the terminal
  bool stop_ = false;

  std::thread thread_;  // the last member: it uses the others
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_STATUS_LINE_H_
