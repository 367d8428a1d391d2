// The engine: one model, one memory budget, one stream of weights.
//
//   auto model = Model::Open({.path = "model.gguf"});
//   auto engine = Engine::Create(*model, {.ram_bytes = 2 << 30});
//   std::unique_ptr<Session> session = (*engine)->NewSession();
//   session->Generate(request, on_text);   // see runtime/session.h
//
// Invariant: logits do not depend on the budget, the prefetch depth, the thread
// count, the batch size or how the bytes were read, bit for bit. Beside a
// device they do depend on which side computes what, which is a function of the
// options, the memory plan and the tokens of a pass.
// Thread-safety: one call at a time on an engine and its sessions, but for
// Submit and what belongs to it.
#ifndef COLDSTREAM_RUNTIME_ENGINE_H_
#define COLDSTREAM_RUNTIME_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/status.h"
#include "base/trace.h"
#include "io/reader.h"
#include "kernels/kv_type.h"
#include "runtime/compute_device.h"
#include "runtime/model.h"
#include "runtime/request.h"
#include "runtime/split_choice.h"
#include "scheduler/memory_plan.h"
#include "scheduler/placement.h"
#include "scheduler/split_rates.h"

namespace coldstream {

class Batcher;
class EngineCore;
class Session;

struct EngineOptions {
  // Cap on the memory of the process. 0: what the smallest cgroup limit and
  // MemAvailable allow, less head room.
  uint64_t ram_bytes = 0;
  // Units read ahead, kMin..kMaxPrefetchDepth, or automatic.
  int prefetch_depth = kAutoPrefetchDepth;
  ReaderOptions reader = {};
  int threads = 0;      // 0: affinity and CPU quota decide
  int64_t context = 0;  // positions; 0: min(4096, what it was trained on)
  int64_t batch_tokens = 512;  // most tokens of one pass
  int64_t logit_rows = 1;      // most tokens of one pass that want logits
  // Submitted requests: how many are worked on at once, how many may wait, and
  // the positions of all of them together (0: as many as each may have).
  int64_t max_sequences = 1;
  int64_t queue_length = 64;
  int64_t kv_tokens = 0;
  // How their keys and values are stored. kQ8_0 takes 53 % of the memory and
  // changes results a little.
  KvType kv_type = KvType::kF16;
  std::optional<Isa> isa = {};  // unset: COLDSTREAM_ISA or the best
  // Computes there; null: on the CPU. See OpenComputeDevice.
  std::shared_ptr<ComputeDevice> gpu = nullptr;
  // Why the CPU, where that was not the user's choice; for reports.
  std::string device_fallback = {};
  // Cap on what is taken of the device's memory. 0: what is free, less head
  // room. Given without a device, plans are made for one of that size.
  uint64_t vram_bytes = 0;
  // Which layers the CPU computes beside a device: the weights of those stay in
  // host memory and are not copied. Without a device all of it is ignored. A
  // count larger than there are means all; what is not set is filled in. What
  // does not fit in host memory is ResourceExhausted.
  //
  // The last so many layers are the device's, the others the CPU's, with their
  // keys and values in host memory. As in llama.cpp the output head counts as
  // the last layer: all are one more than the model has, and 0 leaves the
  // device out of it. Unset: all, less cpu_layers.
  std::optional<int> gpu_layers = {};
  // The same from the other end: the first so many are the CPU's; the head
  // never is. Set both, and they must agree.
  std::optional<int> cpu_layers = {};
  // FFNs of so many of the device's layers, evenly spread, are the CPU's: in
  // passes of few tokens (kMostDecodeTokens) and of more. The weights are
  // copied in passes where they are not. Unset: what split_rates predict to be
  // fastest; if those are not known none, and cpu_ffn_prefill as cpu_ffn.
  std::optional<int> cpu_ffn = {};
  std::optional<int> cpu_ffn_prefill = {};
  SplitRates split_rates = {};
  // Host memory between disk and device, part of ram_bytes.
  uint64_t staging_bytes = uint64_t{64} << 20;
  // When it becomes true, the running call and every later one end with
  // Cancelled soon: at the latest when the kernels at work end their ranges of
  // rows. May be set from a signal handler. Must outlive the engine.
  const std::atomic<bool>* cancel = nullptr;
  // Told of every read, unit, stall and sampled token. Must outlive the engine.
  TraceSink* trace = nullptr;
};

struct EngineStats {
  int64_t passes = 0;  // finished
  int64_t units = 0;   // weight units computed; a pass has weights().units of
                       // them
  uint64_t bytes_from_disk = 0;
  double disk_busy_seconds = 0;  // at least one read in flight
  double run_seconds = 0;        // inside finished Generate and Evaluate calls
  double compute_seconds = 0;
  double stall_seconds = 0;        // computation waited for weights
  uint64_t bytes_uploaded = 0;     // from host memory to the device
  double upload_busy_seconds = 0;  // copies of weights alone
  int64_t cpu_units = 0;           // computed by the CPU beside a device
  double cpu_seconds = 0;          // that took, of compute_seconds
};

// Of submitted requests.
struct BatchStats {
  int64_t submitted = 0;
  int64_t waiting = 0;   // now
  int64_t running = 0;   // now
  int64_t finished = 0;  // with OK
  int64_t failed = 0;
  int64_t passes = 0;
  int64_t computed_tokens = 0;   // of prompts and answers, by passes
  int64_t generated_tokens = 0;  // of requests that have ended
  int64_t reused_tokens = 0;     // of beginnings that were there already
  int64_t put_back = 0;          // times a request had to make room
};

// What came between two stats() of one engine.
EngineStats Since(const EngineStats& earlier, const EngineStats& now);

class Engine {
 public:
  // Plans memory and takes it; weights are read by the first pass. Errors:
  // ResourceExhausted with the least budget that works; InvalidArgument;
  // Unavailable (an I/O backend or ISA asked for and not there); Unimplemented
  // (a model that the device's kernels do not take).
  static StatusOr<std::unique_ptr<Engine>> Create(
      std::shared_ptr<const Model> model, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The session must not outlive the engine. All sessions share the engine's
  // `context` positions.
  std::unique_ptr<Session> NewSession();

  // Requests that are worked on together, in one sweep of the weights a token;
  // from any thread, callbacks on the engine's own. Results do not depend on
  // what else is submitted or when. Waits while queue_length requests wait.
  // Once something was submitted, sessions refuse to run. Errors:
  // InvalidArgument (the request: nothing was taken); FailedPrecondition (a
  // session holds positions).
  StatusOr<RequestId> Submit(Request request, RequestCallbacks callbacks);
  // The same, but ResourceExhausted where it would wait.
  StatusOr<RequestId> TrySubmit(Request request, RequestCallbacks callbacks);
  // Submits and hands over the result as a future.
  StatusOr<std::future<RequestResult>> Submit(Request request);
  // Ends with Cancelled within a pass; nothing if it has ended already.
  void Cancel(RequestId id);
  // Ends everything that was submitted with Cancelled and takes no more; also
  // from a thread other than one that waits in Submit or Drain.
  void Stop();
  // Waits until all that was submitted before has ended.
  void Drain();
  BatchStats batch_stats() const;

  const Model& model() const;
  const MemoryPlan& plan() const;  // of host memory
  // Of the device's memory, or null on the CPU.
  const MemoryPlan* vram_plan() const;
  const char* device_name() const;  // "cpu", or the card's own name
  // What the CPU computes beside the device, by unit; empty if nothing.
  const Placement& placement() const;
  const SplitChoice& split() const;  // behind it
  // Host memory that copies to the device can use beside the host.
  uint64_t pinned_bytes() const;
  const EngineOptions& options() const;  // with every default filled in
  // Of everything since Create; while a call runs, up to its latest stage. Any
  // thread.
  EngineStats stats() const;
  int64_t context() const;
  int threads() const;
  const char* isa_name() const;    // the ops row in use
  const char* io_backend() const;  // "uring" or "pread"
  bool direct_io() const;          // every file read past the page cache
  int prefetch_depth() const;
  // One line each, worth showing once (a fallback and its reason).
  std::vector<std::string> warnings() const;

 private:
  friend class Session;
  explicit Engine(std::unique_ptr<EngineCore> core);
  StatusOr<Batcher*> StartBatcher();

  std::unique_ptr<EngineCore> core_;
  mutable std::mutex batcher_mutex_;  // guards the making of:
  std::unique_ptr<Batcher> batcher_;
  bool stopped_ = false;
};

// The budget Engine::Create takes for ram_bytes = 0, and where it comes from.
struct DefaultBudget {
  uint64_t bytes = 0;
  std::string source;
};
DefaultBudget DefaultRamBudget();

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_ENGINE_H_
