// What an Engine owns, in the order it is made. Internal to runtime/.
#ifndef COLDSTREAM_RUNTIME_ENGINE_CORE_H_
#define COLDSTREAM_RUNTIME_ENGINE_CORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/device.h"
#include "base/parallel.h"
#include "base/staging_ring.h"
#include "base/status.h"
#include "graphs/decoder.h"
#include "graphs/stream_graph.h"
#include "io/reader.h"
#include "kernels/pass_ops.h"
#include "runtime/engine.h"
#include "runtime/split_choice.h"
#include "scheduler/memory_plan.h"
#include "scheduler/placement.h"
#include "scheduler/uploader.h"
#include "scheduler/weight_store.h"

namespace coldstream {

// Supplies the tokens of each pass and takes its logits. Calls alternate.
class PassClient {
 public:
  virtual ~PassClient() = default;
  // Fills an empty batch with at least one token.
  virtual Status NextBatch(Batch* batch) = 0;
  // True: another pass follows.
  virtual StatusOr<bool> Consume(const Decoder& decoder) = 0;
  // Which kind of pass the nth of a run is. Asked ahead of time, from any
  // thread; always the same answer.
  virtual Phase PhaseOf(int64_t pass) const = 0;
  // The pass under way ends with Cancelled as soon as it can.
  virtual bool stopped() const { return false; }
};

class EngineCore {
 public:
  static StatusOr<std::unique_ptr<EngineCore>> Create(
      std::shared_ptr<const Model> model, const EngineOptions& options);

  // Runs passes until the client says stop or `max_passes` are done.
  Status RunPasses(PassClient* client, int64_t max_passes);

  EngineStats stats() const;
  ~EngineCore();

  std::shared_ptr<const Model> model;
  EngineOptions options;  // with defaults filled in
  const Ops* ops = nullptr;
  std::unique_ptr<Parallel> parallel;
  MemoryPlan plan;                      // of host memory
  std::optional<MemoryPlan> vram_plan;  // null: the CPU computes
  Placement placement;                  // what it computes beside a device
  SplitChoice split;
  std::unique_ptr<Device> cpu;
  Device* device = nullptr;         // the GPU's, or cpu
  std::unique_ptr<Stream> compute;  // null: the CPU's ops just run
  WeightStore store;
  KvCache cache;
  Workspace workspace;
  EmbeddingRows embedding;
  std::unique_ptr<PassOps> pass_ops;
  Workspace host_workspace;           // of what the CPU computes beside a
  std::unique_ptr<PassOps> host_ops;  // device; null if nothing
  std::optional<StagingRing> staging;
  std::unique_ptr<Uploader> uploader;
  // Made after the memory it reads into, so that it is gone before it.
  std::unique_ptr<Reader> reader;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<StreamGraph> graph;
  // There is a Batcher: it alone runs passes.
  std::atomic<bool> batching{false};

 private:
  EngineCore() = default;
  Status TakeMemory();
  Status TakeDeviceMemory();
  Status TakeHostSide(const PassLimits& limits);
  Status StartReading();
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_ENGINE_CORE_H_
