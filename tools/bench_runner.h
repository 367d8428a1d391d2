// Runs a benchmark's phases on an engine, and counts.
//
// A run: an empty session, the prompt in passes of up to -b tokens, then
// generated tokens one a pass, greedy, past any end of generation. Prompt and
// generation are two calls, so that their counts are apart; nothing is read
// ahead from the one into the other.
// With -np sequences every one of them does so, all at once, with a prompt of
// its own.
// Errors: those of Evaluate and Generate.
#ifndef COLDSTREAM_TOOLS_BENCH_RUNNER_H_
#define COLDSTREAM_TOOLS_BENCH_RUNNER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/session.h"
#include "tools/bench_flags.h"
#include "tools/phase_sample.h"
#include "tools/read_counts.h"
#include "tools/status_line.h"

namespace coldstream {

class BenchRunner {
 public:
  // All must outlive the runner.
  BenchRunner(const BenchFlags* flags, const ReadCounter* counter,
              Engine* engine, StatusLine* status);

  // `label` and `runs_after` (how many more will come) are for the status line.
  StatusOr<BenchRun> Run(const std::string& label, int runs_after);

 private:
  template <typename Body>
  StatusOr<PhaseSample> Measure(const Body& body);
  StatusOr<PhaseSample> FeedPrompt();
  StatusOr<PhaseSample> Generate();
  // The same of many sequences. `make`: the request of each.
  StatusOr<PhaseSample> FeedPrompts();
  StatusOr<PhaseSample> GenerateTogether();
  StatusOr<PhaseSample> RunTogether(const std::function<Request()>& make,
                                    int64_t tokens_of_each);
  std::vector<TokenId> NewPrompt(int64_t tokens);

  const BenchFlags& flags_;
  const ReadCounter& counter_;
  Engine& engine_;
  StatusLine& status_;
  const std::unique_ptr<Session> session_;  // null for many sequences
  const std::vector<TokenId> tokens_;       // the prompt, and one more
  uint64_t prompts_made_ = 0;
  std::optional<BenchRun> last_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BENCH_RUNNER_H_
