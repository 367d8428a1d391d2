// What a status line says of an engine at work: tokens, speed, reads, waiting.
//
//   StatusMeter meter(units_per_pass, disk_ceiling);
//   meter.Begin(work, engine.stats(), now);
//   meter.Line(engine.stats(), now, columns);   // five times a second
//   // prompt 25 % of 512  24.1 tok/s  1.45 GB/s (97 %)  waits 43 %  ETA 0:18
//
// Arithmetic on counters and times that are handed in; no clock is read. What
// is not known yet is left out. Speed and ETA are of the phase (prompt or
// generation) under way and count parts of passes; GB/s is of about the last
// second, waiting of the call so far.
// Units: seconds; bytes per second.
#ifndef COLDSTREAM_TOOLS_STATUS_METER_H_
#define COLDSTREAM_TOOLS_STATUS_METER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "runtime/engine.h"

namespace coldstream {

// What one call of a session is to do.
struct StatusWork {
  std::string label = {};        // in front: "run 2/5"; may be empty
  int64_t prompt_tokens = 0;     // 0: every pass generates a token
  int64_t pass_tokens = 1;       // of the prompt, at most
  int64_t generated_tokens = 0;  // -1: until the text ends
  // What comes after this call; nullopt: not known, so there is no ETA.
  std::optional<double> seconds_after = 0;
};

class StatusMeter {
 public:
  StatusMeter(int64_t units_per_pass, std::optional<double> disk_ceiling)
      : units_per_pass_(units_per_pass), disk_ceiling_(disk_ceiling) {}

  void Begin(const StatusWork& work, const EngineStats& stats, double now);

  // At most `columns` characters, all ASCII; figures that do not fit are left
  // out, the last first. Times must not go back.
  std::string Line(const EngineStats& stats, double now, size_t columns);

 private:
  struct Phase {
    double begin_at = 0;
    int64_t begin_units = 0;  // of the call
    int64_t passes = 0;       // -1: open
    int64_t tokens = 0;       // in all passes
  };
  struct Sample {
    double at = 0;
    uint64_t bytes = 0;
  };
  int64_t PromptPasses() const;
  void BeginGeneration(double now);
  std::string Progress(int64_t passes, int64_t units) const;
  double PassesDone(int64_t units) const;  // of the phase
  std::string Speed(int64_t units, double now) const;
  std::string Eta(int64_t units, double now) const;
  std::string Reads(uint64_t bytes, double now);
  std::string Waits(double stall_seconds, double now) const;

  const int64_t units_per_pass_;
  const std::optional<double> disk_ceiling_;
  StatusWork work_;
  EngineStats begin_;
  double begin_at_ = 0;
  bool generating_ = false;
  Phase phase_;
  std::deque<Sample> samples_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_STATUS_METER_H_
