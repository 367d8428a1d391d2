#include "graphs/stream_graph.h"

#include <oneapi/tbb/flow_graph.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
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

// Messages are small and copyable: indices, never leases.
struct Step {
  uint64_t seq = 0;
  int64_t pass = 0;
  int stage = 0;
};
struct Loaded {
  Step step;
  int slot = 0;
  int staging = -1;  // the buffer that was read to; -1: none
  Status status;
};
using Admitted = std::tuple<Step, int>;  // step, slot
using ReadNode = flow::async_node<Admitted, Loaded>;
using RunNode = flow::multifunction_node<Loaded, std::tuple<int>>;

// Bytes of unit reads that are on their way, for the trace.
struct BytesInFlight {
  std::atomic<int64_t> bytes{0};
  TraceSink* trace = nullptr;

  void Add(int64_t change) {
    const int64_t now = bytes.fetch_add(change) + change;
    trace->Count(TraceCounter::kBytesInFlight, TraceNow(), now);
  }
};

// One read in flight per slot; lives as long as the graph.
class SlotRead final : public ReadCompletion, public StagingUser {
 public:
  void Begin(const Step& step, int slot, ReadNode::gateway_type* gateway) {
    loaded_ = {step, slot, -1, absl::OkStatus()};
    gateway_ = gateway;
    unit_ = nullptr;
    windows.clear();
  }
  // The read is to be traced.
  void Trace(const WeightUnit* unit, BytesInFlight* in_flight) {
    unit_ = unit;
    in_flight_ = in_flight;
    issued_ns_ = 0;
  }
  void OnIssue() override {
    if (unit_ == nullptr) return;
    issued_ns_ = TraceNow();
    in_flight_->Add(static_cast<int64_t>(unit_->read_bytes));
  }
  // Reads of units that have no place on the host: `begin` submits them once
  // there is a staging buffer to read to.
  void set_begin_staged(std::function<void(SlotRead*)> begin) {
    begin_staged_ = std::move(begin);
  }
  void OnStaging(int buffer) override {
    loaded_.staging = buffer;
    begin_staged_(this);
  }
  const Loaded& loaded() const { return loaded_; }

  void OnRead(Status status) override {
    if (unit_ != nullptr && issued_ns_ != 0) TraceEnd();
    // Once the message is out this slot may be reused, so keep the gateway.
    ReadNode::gateway_type* const gateway = gateway_;
    loaded_.status = std::move(status);
    const Loaded message = loaded_;
    gateway->try_put(message);
    gateway->release_wait();
  }
  std::vector<ReadWindow> windows;

 private:
  void TraceEnd() {
    in_flight_->Add(-static_cast<int64_t>(unit_->read_bytes));
    in_flight_->trace->Span({TraceLane::kDisk, unit_->name, issued_ns_,
                             TraceNow(), loaded_.step.pass, unit_->read_bytes});
  }

  Loaded loaded_;
  std::function<void(SlotRead*)> begin_staged_;
  ReadNode::gateway_type* gateway_ = nullptr;
  const WeightUnit* unit_ = nullptr;  // null: not traced
  BytesInFlight* in_flight_ = nullptr;
  int64_t issued_ns_ = 0;
};

}  // namespace

// The state of one Run. Bodies run on arena threads and OnRead on the reader's,
// so what they share is atomic or guarded; what only the serial run node
// touches is marked so.
class StreamGraph::RunState {
 public:
  RunState(const Parts& parts, Tally* tally, PassRunner* runner,
           int64_t max_passes, const std::atomic<bool>* cancel)
      : parts_(parts),
        store_(parts.store),
        tally_(tally),
        runner_(runner),
        max_passes_(max_passes),
        cancel_(cancel),
        first_pass_(MakeStages(store_->NeedsLoadNow(runner->PhaseOf(0)))),
        later_pass_({MakeStages(store_->NeedsLoadAlways(kPhases[0])),
                     MakeStages(store_->NeedsLoadAlways(kPhases[1]))}),
        host_loaded_(store_->host_loaded()),
        slots_(parts.uploader == nullptr ? parts.prefetch_depth : SafeSlots()),
        reads_(static_cast<size_t>(slots_)),
        free_slots_(slots_) {
    in_flight_.trace = parts.trace;
    for (SlotRead& read : reads_)
      read.set_begin_staged(
          [this](SlotRead* staged) { ReadToStaging(staged); });
  }

  int slots() const { return slots_; }

  void Begin() { counted_ns_ = TraceNow(); }

  // plan: the next step; false when there is none.
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
    CountFreeSlots(-1);
    const int unit = StageOf(step).loaded_unit();
    if (unit < 0 || stopped()) {
      read.OnRead(absl::OkStatus());
    } else if (parts_.uploader == nullptr) {
      Submit(unit, store_->Destination(unit, slot), &read);
    } else if (std::byte* const home = store_->HostHome(unit)) {
      // Read in the first pass, uploaded from there in all.
      if (step.pass > 0 || host_loaded_[static_cast<size_t>(unit)]) {
        read.OnRead(absl::OkStatus());
      } else {
        Submit(unit, home, &read);
      }
    } else {
      parts_.uploader->AcquireStaging(&read);
    }
  }

  // upload: queues the copy of what was read. Serial.
  Loaded Upload(Loaded loaded) {
    const int unit = StageOf(loaded.step).loaded_unit();
    if (unit >= 0 && loaded.status.ok() && !stopped()) {
      if (store_->HostHome(unit) != nullptr) store_->MarkInHostMemory(unit);
      if (!OnCpu(unit, loaded.step)) loaded.status = QueueUpload(unit, loaded);
    } else if (loaded.staging >= 0) {
      parts_.uploader->ReleaseStaging(loaded.staging);
    }
    loaded.staging = -1;
    return loaded;
  }

  // run: computes a stage and sends the slot home. Serial.
  void RunStage(const Loaded& loaded, RunNode::output_ports_type* ports) {
    auto& slots = std::get<0>(*ports);
    held_slot_ = loaded.slot;
    if (!stopped()) {
      CountStall(loaded.step);
      const Status status = ComputeStage(loaded, [&] { ReturnSlot(&slots); });
      if (!status.ok()) Fail(status);
      CountCompute();
    }
    ReturnSlot(&slots);
  }

  void Fail(const Status& status) {
    if (status.ok()) return;
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

 private:
  const std::vector<Stage>& StagesOf(int64_t pass) const {
    return pass == 0 ? first_pass_
                     : later_pass_[static_cast<size_t>(runner_->PhaseOf(pass))];
  }
  bool OnCpu(int unit, const Step& step) const {
    return store_->OnCpu(unit, runner_->PhaseOf(step.pass));
  }
  const Stage& StageOf(const Step& step) const {
    return StagesOf(step.pass)[static_cast<size_t>(step.stage)];
  }
  const WeightUnit& UnitAt(int unit) const {
    return store_->units()[static_cast<size_t>(unit)];
  }
  // Slots in use with an uploader: a later pass uploads units from where the
  // first one reads them to on the host, and takes them to be there. So there
  // are no more stages under way than from the one to the other.
  int SafeSlots() const {
    const int depth = parts_.prefetch_depth;
    const int first_stages = static_cast<int>(first_pass_.size());
    std::vector<int> read_in(
        store_->units().size());  // stage of the first pass
    int slots = depth;
    int stage_number = 0;
    for (int64_t pass = 0; pass < max_passes_; ++pass) {
      for (const Stage& stage : StagesOf(pass)) {
        if (stage_number >= first_stages + depth) return slots;
        const int unit = stage.loaded_unit();
        if (unit >= 0 && store_->HostHome(unit) != nullptr &&
            !host_loaded_[static_cast<size_t>(unit)]) {
          int& read = read_in[static_cast<size_t>(unit)];
          if (pass == 0) read = stage_number;
          if (pass > 0) slots = std::min(slots, stage_number - read);
        }
        ++stage_number;
      }
    }
    return slots;
  }

  void Submit(int unit, std::byte* to, SlotRead* read) {
    const WeightUnit& weights = UnitAt(unit);
    AppendWindows(weights, to, &read->windows);
    if (parts_.trace != nullptr) read->Trace(&weights, &in_flight_);
    parts_.reader->Submit(read->windows, ReadPriority::kNormal, read);
  }

  void ReadToStaging(SlotRead* read) {
    const Loaded& loaded = read->loaded();
    if (stopped()) return read->OnRead(absl::OkStatus());
    Submit(StageOf(loaded.step).loaded_unit(),
           parts_.uploader->staging(loaded.staging).data(), read);
  }

  Status QueueUpload(int unit, const Loaded& loaded) {
    const WeightUnit& weights = UnitAt(unit);
    const std::byte* from = store_->HostHome(unit);
    if (from == nullptr) from = parts_.uploader->staging(loaded.staging).data();
    return parts_.uploader->Upload(
        {.slot = loaded.slot,
         .from = from,
         .to = store_->Destination(unit, loaded.slot),
         .bytes = weights.buffer_bytes,
         .staging = loaded.staging,
         .name = weights.name,
         .pass = loaded.step.pass});
  }

  bool stopped() const { return stop_.load(std::memory_order_acquire); }

  // No further step is planned; what was read ahead is not needed.
  void Stop() {
    stop_.store(true, std::memory_order_release);
    parts_.reader->CancelQueued();
  }

  template <typename Slots>
  void ReturnSlot(Slots* slots) {
    if (held_slot_ < 0) return;
    CountFreeSlots(1);
    slots->try_put(std::exchange(held_slot_, -1));
  }

  template <typename ReleaseSlot>
  Status ComputeStage(const Loaded& loaded, const ReleaseSlot& release_slot) {
    RETURN_IF_ERROR(loaded.status);
    RETURN_IF_ERROR(CheckCancelled());
    const Step& step = loaded.step;
    const Stage& stage = StageOf(step);
    const Phase phase = runner_->PhaseOf(step.pass);
    const int cold = stage.loaded_unit();
    const bool on_cpu = cold >= 0 && store_->OnCpu(cold, phase);
    if (cold >= 0 && parts_.uploader != nullptr && !on_cpu)
      RETURN_IF_ERROR(parts_.uploader->WaitReady(loaded.slot));
    if (cold >= 0 && store_->resident(cold)) store_->MarkLoaded(cold);
    if (cold < 0 || on_cpu || store_->resident(cold)) release_slot();
    if (stage.begin == 0) RETURN_IF_ERROR(runner_->BeginPass(step.pass));
    for (int unit = stage.begin; unit < stage.end; ++unit) {
      const Status status =
          runner_->RunUnit(unit, store_->WeightsOf(unit, loaded.slot, phase));
      // A cancelled kernel leaves its work half done: whatever came of it, the
      // interruption is the reason.
      RETURN_IF_ERROR(CheckCancelled());
      RETURN_IF_ERROR(status);
      ++tally_->units;
      if (unit == cold) {
        if (parts_.uploader != nullptr && held_slot_ >= 0)
          RETURN_IF_ERROR(parts_.uploader->RecordUse(loaded.slot));
        release_slot();
      }
      CountCompute();
    }
    if (stage.end < static_cast<int>(store_->units().size()))
      return absl::OkStatus();
    RETURN_IF_ERROR(runner_->FinishPass(step.pass));
    if (parts_.uploader != nullptr) RETURN_IF_ERROR(EndUploads());
    ASSIGN_OR_RETURN(const bool more, runner_->EndPass(step.pass));
    ++tally_->passes;
    if (!more) Stop();
    return absl::OkStatus();
  }

  // Time is a stall from where it was last counted up to a stage's begin, and
  // computation from there on. Counted after every unit, so that EndPass sees
  // the figures of its pass.
  void CountStall(const Step& step) {
    const int64_t since = std::exchange(counted_ns_, TraceNow());
    tally_->stall_ns += counted_ns_ - since;
    const int unit = StageOf(step).loaded_unit();
    if (parts_.trace == nullptr || unit < 0) return;
    const WeightUnit& weights = UnitAt(unit);
    parts_.trace->Span({TraceLane::kStall,
                        absl::StrFormat("waits for disk: %s", weights.name),
                        since, counted_ns_, step.pass, weights.read_bytes});
  }

  void CountCompute() {
    const int64_t since = std::exchange(counted_ns_, TraceNow());
    tally_->compute_ns += counted_ns_ - since;
  }

  // What the compute stream stood still was counted as computation, because
  // the host only saw the pass as a whole.
  Status EndUploads() {
    CountCompute();
    ASSIGN_OR_RETURN(const double stall, parts_.uploader->EndPass());
    const auto stall_ns = static_cast<int64_t>(stall * 1e9);
    tally_->stall_ns += stall_ns;
    tally_->compute_ns -= stall_ns;
    return absl::OkStatus();
  }

  void CountFreeSlots(int change) {
    if (parts_.trace == nullptr) return;
    const int now = free_slots_.fetch_add(change) + change;
    parts_.trace->Count(TraceCounter::kFreeSlots, TraceNow(), now);
  }

  Status CheckCancelled() const {
    if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed))
      return absl::CancelledError("interrupted");
    return absl::OkStatus();
  }

  const Parts& parts_;
  WeightStore* const store_;
  Tally* const tally_;
  PassRunner* const runner_;
  const int64_t max_passes_;
  const std::atomic<bool>* const cancel_;
  const std::vector<Stage> first_pass_;  // loads what is not in memory yet
  // By phase; they load the cold units.
  const std::array<std::vector<Stage>, kPhases.size()> later_pass_;
  Step next_;                            // the plan node's
  const std::vector<bool> host_loaded_;  // at the run's begin, by unit
  const int slots_;
  std::vector<SlotRead> reads_;  // by slot
  std::atomic<bool> stop_{false};
  std::atomic<int> free_slots_;  // for the trace
  BytesInFlight in_flight_;      // for the trace
  int64_t counted_ns_ = 0;       // the run node's: stats hold the time up to it
  int held_slot_ = -1;           // the run node's; -1: sent home
  std::mutex mutex_;
  Status status_;  // the first error; guarded by mutex_
};

Status StreamGraph::Run(PassRunner* runner, int64_t max_passes,
                        const std::atomic<bool>* cancel) {
  RunState state(parts_, &tally_, runner, max_passes, cancel);
  const int64_t begin_ns = TraceNow();
  parts_.parallel->set_cancel(cancel);
  const auto run_graph = [&] {
    flow::graph graph;
    flow::input_node<Step> plan(graph, [&](oneapi::tbb::flow_control& control) {
      Step step;
      if (!state.NextStep(&step)) control.stop();
      return step;
    });
    flow::buffer_node<int> free_slots(graph);
    flow::join_node<Admitted, flow::reserving> admit(graph);
    ReadNode read(
        graph, flow::unlimited,
        [&](const Admitted& admitted, ReadNode::gateway_type& gateway) {
          state.BeginRead(admitted, &gateway);
        });
    flow::sequencer_node<Loaded> order(
        graph, [](const Loaded& loaded) { return loaded.step.seq; });
    RunNode run(graph, flow::serial,
                [&](const Loaded& loaded, RunNode::output_ports_type& ports) {
                  state.RunStage(loaded, &ports);
                });

    flow::make_edge(plan, flow::input_port<0>(admit));
    flow::make_edge(free_slots, flow::input_port<1>(admit));
    flow::make_edge(admit, read);
    flow::function_node<Loaded, Loaded> upload(
        graph, flow::serial,
        [&](const Loaded& loaded) { return state.Upload(loaded); });
    if (parts_.uploader == nullptr) {
      flow::make_edge(read, order);
    } else {
      flow::make_edge(read, upload);
      flow::make_edge(upload, order);
    }
    flow::make_edge(order, run);
    flow::make_edge(flow::output_port<0>(run), free_slots);
    for (int slot = 0; slot < state.slots(); ++slot) free_slots.try_put(slot);
    state.Begin();
    plan.activate();
    graph.wait_for_all();
  };
  try {
    parts_.parallel->Execute(run_graph);
  } catch (const std::exception& error) {
    state.Fail(absl::InternalError(
        absl::StrFormat("flow graph failed: %s", error.what())));
  }
  // Host memory that copies come from may go once this returns.
  if (parts_.uploader != nullptr) state.Fail(parts_.uploader->Drain());
  parts_.parallel->set_cancel(nullptr);
  tally_.run_ns += TraceNow() - begin_ns;
  return state.status();
}

StreamStats StreamGraph::stats() const {
  const auto seconds = [](const std::atomic<int64_t>& nanoseconds) {
    return static_cast<double>(nanoseconds.load()) * 1e-9;
  };
  return {tally_.passes.load(), tally_.units.load(), seconds(tally_.run_ns),
          seconds(tally_.compute_ns), seconds(tally_.stall_ns)};
}

}  // namespace coldstream
