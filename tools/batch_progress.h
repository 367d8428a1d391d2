// How a batch is getting on: a line on the terminal while it works, and what it
// came to.
#ifndef COLDSTREAM_TOOLS_BATCH_PROGRESS_H_
#define COLDSTREAM_TOOLS_BATCH_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/engine.h"
#include "tools/batch_run.h"

namespace coldstream {

// "120 done, 2 failed, 32 at work, 41.2 tok/s, disk 2.10 GB/s, ETA 3:20", of
// the time `seconds`. Without the end of the input there is no ETA.
std::string BatchProgressText(const BatchProgress& progress,
                              const BatchStats& batch, const EngineStats& used,
                              double seconds);

// Lines for people, at the end.
std::string BatchSummary(const Engine& engine, const BatchProgress& progress);

// The text, rewritten every half second where stderr is a terminal, for as long
// as the object lives. Both must outlive it.
class BatchProgressLine {
 public:
  BatchProgressLine(const Engine& engine, const BatchRun& run);
  ~BatchProgressLine();
  BatchProgressLine(const BatchProgressLine&) = delete;
  BatchProgressLine& operator=(const BatchProgressLine&) = delete;

 private:
  void Draw();

  const Engine& engine_;
  const BatchRun& run_;
  const std::chrono::steady_clock::time_point begin_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::thread thread_;  // not there where nobody would see it
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_PROGRESS_H_
