#include "graphs/stream_graph.h"

#include <oneapi/tbb/flow_graph.h>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "scheduler/pass_schedule.h"

namespace coldstream {
namespace {

namespace flow = oneapi::tbb::flow;
using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Messages are small and copyable: indices, never leases.
struct Step {
  uint64_t seq = 0;
  int64_t pass = 0;
  int stage = 0;
};
struct Loaded {
  Step step;
  int slot = 0;
  Status status;
};
using Admitted = std::tuple<Step, int>;  // step, slot
using ReadNode = flow::async_node<Admitted, Loaded>;

// One read in flight per slot; lives as long as the graph.
class SlotRead final : public ReadCompletion {
 public:
  void Begin(const Step& step, int slot, ReadNode::gateway_type* gateway) {
    loaded_ = {step, slot, absl::OkStatus()};
    gateway_ = gateway;
    windows.clear();
  }
  void OnRead(Status status) override {
    // Once the message is out this slot may be reused, so keep the gateway.
    ReadNode::gateway_type* const gateway = gateway_;
    loaded_.status = std::move(status);
    const Loaded message = loaded_;
    gateway->try_put(message);
    gateway->release_wait();
  }
  std::vector<ReadWindow> windows;

 private:
  Loaded loaded_;
  ReadNode::gateway_type* gateway_ = nullptr;
};

// The state of one Run. Bodies run on arena threads and OnRead on the reader's,
// so what they share is atomic or guarded; what only the serial run node
// touches is marked so.
class RunState {
 public:
  RunState(Reader* reader, WeightStore* store, int depth, PassRunner* runner,
           int64_t max_passes, const std::atomic<bool>* cancel)
      : reader_(reader),
        store_(store),
        runner_(runner),
        max_passes_(max_passes),
        cancel_(cancel),
        first_pass_(MakeStages(store->NeedsLoadNow())),
        later_pass_(MakeStages(store->NeedsLoadAlways())),
        reads_(static_cast<size_t>(depth)) {}

  // plan: the next step, or nullopt-like stop.
  bool NextStep(Step* step) {
    if (stopped() || next_.pass == max_passes_) return false;
    *step = next_;
    ++next_.seq;
    if (++next_.stage == static_cast<int>(StagesOf(next_.pass).size())) {
      next_.stage = 0;
      ++next_.pass;
    }
    return true;
  }

  // read: begins filling, or passes the step on at once.
  void BeginRead(const Admitted& admitted, ReadNode::gateway_type* gateway) {
    const auto& [step, slot] = admitted;
    gateway->reserve_wait();
    SlotRead& read = reads_[static_cast<size_t>(slot)];
    read.Begin(step, slot, gateway);
    const int unit = StageOf(step).loaded_unit();
    if (unit < 0 || stopped()) {
      read.OnRead(absl::OkStatus());
      return;
    }
    AppendWindows(store_->units()[static_cast<size_t>(unit)],
                  store_->Destination(unit, slot), &read.windows);
    reader_->Submit(read.windows, ReadPriority::kNormal, &read);
  }

  // run: computes a stage and returns the slot. Serial.
  int RunStage(const Loaded& loaded) {
    const Clock::time_point begin = Clock::now();
    if (!stopped()) {
      stats.stall_seconds += Seconds(begin - last_end_);
      const Status status = ComputeStage(loaded);
      if (!status.ok()) Fail(status);
      last_end_ = Clock::now();
      stats.compute_seconds += Seconds(last_end_ - begin);
    }
    return loaded.slot;
  }

  void Begin() { last_end_ = Clock::now(); }

  void Fail(const Status& status) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (status_.ok()) status_ = status;
    }
    Stop();
  }

  Status status() {
    std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

  StreamStats stats;  // of this run; the run node's

 private:
  const std::vector<Stage>& StagesOf(int64_t pass) const {
    return pass == 0 ? first_pass_ : later_pass_;
  }
  const Stage& StageOf(const Step& step) const {
    return StagesOf(step.pass)[static_cast<size_t>(step.stage)];
  }
  bool stopped() const { return stop_.load(std::memory_order_acquire); }

  // No further step is planned; what was read ahead is not needed.
  void Stop() {
    stop_.store(true, std::memory_order_release);
    reader_->CancelQueued();
  }

  Status ComputeStage(const Loaded& loaded) {
    RETURN_IF_ERROR(loaded.status);
    RETURN_IF_ERROR(CheckCancelled());
    const Step& step = loaded.step;
    const Stage& stage = StageOf(step);
    if (stage.begin == 0) RETURN_IF_ERROR(runner_->BeginPass(step.pass));
    for (int unit = stage.begin; unit < stage.end; ++unit) {
      if (unit == stage.loaded_unit() && store_->resident(unit))
        store_->MarkLoaded(unit);
      const Status status =
          runner_->RunUnit(unit, store_->Destination(unit, loaded.slot));
      // A cancelled kernel leaves its work half done: whatever came of it, the
      // interruption is the reason.
      RETURN_IF_ERROR(CheckCancelled());
      RETURN_IF_ERROR(status);
    }
    if (stage.end < static_cast<int>(store_->units().size()))
      return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool more, runner_->EndPass(step.pass));
    ++stats.passes;
    if (!more) Stop();
    return absl::OkStatus();
  }

  Status CheckCancelled() const {
    if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed))
      return absl::CancelledError("interrupted");
    return absl::OkStatus();
  }

  Reader* const reader_;
  WeightStore* const store_;
  PassRunner* const runner_;
  const int64_t max_passes_;
  const std::atomic<bool>* const cancel_;
  const std::vector<Stage> first_pass_;  // loads what is not in memory yet
  const std::vector<Stage> later_pass_;  // loads the cold units
  Step next_;                            // the plan node's
  std::vector<SlotRead> reads_;          // by slot
  std::atomic<bool> stop_{false};
  Clock::time_point last_end_;  // the run node's
  std::mutex mutex_;
  Status status_;  // the first error; guarded by mutex_
};

void RunGraph(RunState* state, int depth) {
  flow::graph graph;
  flow::input_node<Step> plan(graph,
                              [state](oneapi::tbb::flow_control& control) {
                                Step step;
                                if (!state->NextStep(&step)) control.stop();
                                return step;
                              });
  flow::buffer_node<int> free_slots(graph);
  flow::join_node<Admitted, flow::reserving> admit(graph);
  ReadNode read(
      graph, flow::unlimited,
      [state](const Admitted& admitted, ReadNode::gateway_type& gateway) {
        state->BeginRead(admitted, &gateway);
      });
  flow::sequencer_node<Loaded> order(
      graph, [](const Loaded& loaded) { return loaded.step.seq; });
  flow::function_node<Loaded, int> run(
      graph, flow::serial,
      [state](const Loaded& loaded) { return state->RunStage(loaded); });

  flow::make_edge(plan, flow::input_port<0>(admit));
  flow::make_edge(free_slots, flow::input_port<1>(admit));
  flow::make_edge(admit, read);
  flow::make_edge(read, order);
  flow::make_edge(order, run);
  flow::make_edge(run, free_slots);
  for (int slot = 0; slot < depth; ++slot) free_slots.try_put(slot);
  state->Begin();
  plan.activate();
  graph.wait_for_all();
}

}  // namespace

StreamGraph::StreamGraph(Parallel* parallel, Reader* reader, WeightStore* store,
                         int prefetch_depth)
    : parallel_(parallel),
      reader_(reader),
      store_(store),
      prefetch_depth_(prefetch_depth) {}

Status StreamGraph::Run(PassRunner* runner, int64_t max_passes,
                        const std::atomic<bool>* cancel) {
  RunState state(reader_, store_, prefetch_depth_, runner, max_passes, cancel);
  parallel_->set_cancel(cancel);
  try {
    parallel_->Execute([&] { RunGraph(&state, prefetch_depth_); });
  } catch (const std::exception& error) {
    state.Fail(absl::InternalError(
        absl::StrFormat("flow graph failed: %s", error.what())));
  }
  parallel_->set_cancel(nullptr);
  stats_.passes += state.stats.passes;
  stats_.compute_seconds += state.stats.compute_seconds;
  stats_.stall_seconds += state.stats.stall_seconds;
  return state.status();
}

}  // namespace coldstream
