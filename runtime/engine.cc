#include "runtime/engine.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/byte_units.h"
#include "base/prefault.h"
#include "runtime/batcher.h"
#include "runtime/engine_core.h"
#include "runtime/engine_plan.h"
#include "runtime/session.h"

namespace coldstream {
namespace {

// Drives the decoder and the client from the graph's run node.
class Runner final : public PassRunner {
 public:
  Runner(EngineCore* core, PassClient* client)
      : core_(*core),
        weights_(core->model->weights()),
        trace_(core->options.trace),
        client_(client) {}

  Status BeginPass(int64_t pass) override {
    pass_ = pass;
    RETURN_IF_ERROR(core_.model->checkpoint().CheckUnchanged());
    batch_.clear();
    RETURN_IF_ERROR(client_->NextBatch(&batch_));
    return Traced(TraceLane::kEmbedding, "embedding", 0,
                  [&] { return core_.decoder->Begin(batch_, PhaseOf(pass)); });
  }
  Phase PhaseOf(int64_t pass) const override { return client_->PhaseOf(pass); }
  Status RunUnit(int unit, const std::byte* weights) override {
    if (client_->stopped()) return absl::CancelledError("stopped");
    const WeightUnit& unit_info = weights_.units[static_cast<size_t>(unit)];
    return Traced(LaneOf(unit), unit_info.name, unit_info.weight_bytes(),
                  [&] { return core_.decoder->RunUnit(unit, weights); });
  }
  Status FinishPass(int64_t) override { return core_.decoder->End(); }
  StatusOr<bool> EndPass(int64_t) override {
    return Traced(TraceLane::kSampler, "sample", 0,
                  [&] { return client_->Consume(*core_.decoder); });
  }

 private:
  template <typename Body>
  auto Traced(TraceLane lane, std::string_view name, uint64_t bytes,
              const Body& body) -> decltype(body()) {
    if (trace_ == nullptr) return body();
    const int64_t begin = TraceNow();
    auto result = body();
    trace_->Span({lane, name, begin, TraceNow(), pass_, bytes});
    return result;
  }

  TraceLane LaneOf(int unit) const {
    if (unit == kVectorUnit) return TraceLane::kEmbedding;
    switch (weights_.matrices[static_cast<size_t>(unit)].front().kind) {
      case MatrixKind::kQ:
      case MatrixKind::kK:
      case MatrixKind::kV:
      case MatrixKind::kAttnOutput:
        return TraceLane::kAttention;
      case MatrixKind::kGate:
      case MatrixKind::kUp:
      case MatrixKind::kDown:
        return TraceLane::kFfn;
      case MatrixKind::kHead:
        break;
    }
    return TraceLane::kHead;
  }

  EngineCore& core_;
  const WeightMap& weights_;
  TraceSink* const trace_;
  PassClient* client_;
  Batch batch_;
  int64_t pass_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<EngineCore>> EngineCore::Create(
    std::shared_ptr<const Model> model, const EngineOptions& options) {
  std::unique_ptr<EngineCore> core(new EngineCore);
  core->model = std::move(model);
  ASSIGN_OR_RETURN(EnginePlan plan, PlanEngine(*core->model, options));
  core->options = std::move(plan.options);
  core->plan = std::move(plan.memory);
  core->vram_plan = std::move(plan.vram);
  core->placement = std::move(plan.placement);
  core->split = plan.split;
  const EngineOptions& filled = core->options;
  if (core->vram_plan && filled.gpu == nullptr) {
    return absl::InvalidArgumentError(
        "a device memory budget was given, but no device to run on");
  }
  ASSIGN_OR_RETURN(core->ops, options.isa ? OpsFor(*options.isa) : SelectOps());
  core->parallel = std::make_unique<Parallel>(filled.threads);
  core->cpu = CreateCpuDevice();
  core->device =
      filled.gpu != nullptr ? filled.gpu->device.get() : core->cpu.get();
  RETURN_IF_ERROR(core->TakeMemory());
  RETURN_IF_ERROR(core->StartReading());
  const WeightMap& weights = core->model->weights();
  core->decoder = std::make_unique<Decoder>(
      Decoder::Parts{.config = &core->model->config(),
                     .map = &weights,
                     .ops = core->pass_ops.get(),
                     .host_ops = core->ops,
                     .reader = core->reader.get(),
                     .cache = &core->cache,
                     .workspace = &core->workspace,
                     .embedding = &core->embedding,
                     .vocab = core->model->vocab_size(),
                     .host = {.ops = core->host_ops.get(),
                              .workspace = &core->host_workspace,
                              .vectors = core->store.HostHome(kVectorUnit),
                              .placement = &core->placement}});
  core->graph = std::make_unique<StreamGraph>(
      StreamGraph::Parts{.parallel = core->parallel.get(),
                         .reader = core->reader.get(),
                         .store = &core->store,
                         .prefetch_depth = filled.prefetch_depth,
                         .uploader = core->uploader.get(),
                         .trace = filled.trace});
  return core;
}

Status EngineCore::TakeMemory() {
  const ModelConfig& config = model->config();
  const WeightMap& weights = model->weights();
  const PassLimits limits = LimitsOfPass(*model, options);
  if (vram_plan) {
    RETURN_IF_ERROR(TakeDeviceMemory());
    ASSIGN_OR_RETURN(
        pass_ops, options.gpu->kernels.create(device, compute.get(), limits));
    if (!placement.of(Phase::kDecode).empty())
      RETURN_IF_ERROR(TakeHostSide(limits));
  } else {
    ASSIGN_OR_RETURN(store, WeightStore::Create(weights.units, plan, device));
    ASSIGN_OR_RETURN(pass_ops, CreateCpuPassOps(ops, parallel.get(), limits));
  }
  ASSIGN_OR_RETURN(
      cache, KvCache::Create(config, options.kv_type, options.kv_tokens, device,
                             options.cpu_layers.value_or(0), cpu.get()));
  ASSIGN_OR_RETURN(workspace, Workspace::Create(config, options.batch_tokens,
                                                options.logit_rows, device));
  ASSIGN_OR_RETURN(
      embedding, EmbeddingRows::Create(weights.embedding, EmbeddingFile(*model),
                                       options.batch_tokens));
  return absl::OkStatus();
}

Status EngineCore::TakeDeviceMemory() {
  const auto& units = model->weights().units;
  ASSIGN_OR_RETURN(const DeviceMemoryInfo memory, device->MemoryInfo());
  if (vram_plan->total() > memory.free) {
    const auto mib = [](uint64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(kMiB);
    };
    return absl::ResourceExhaustedError(absl::StrFormat(
        "--vram %.0fM: the model takes %.0f MiB of the device's memory but "
        "only %.0f of %.0f MiB are free; give a smaller --vram, or free some",
        mib(vram_plan->budget), mib(vram_plan->total()), mib(memory.free),
        mib(memory.total)));
  }
  ASSIGN_OR_RETURN(
      store, WeightStore::Create(units, *vram_plan, plan, device, placement));
  ASSIGN_OR_RETURN(compute, device->NewStream());
  ASSIGN_OR_RETURN(staging, StagingRing::Create(device, plan.fixed.staging,
                                                StagingBufferBytes(units)));
  ASSIGN_OR_RETURN(uploader, Uploader::Create({.device = device,
                                               .compute = compute.get(),
                                               .staging = &*staging,
                                               .slots = options.prefetch_depth,
                                               .trace = options.trace}));
  return absl::OkStatus();
}

// No logits: the head is the device's.
Status EngineCore::TakeHostSide(const PassLimits& limits) {
  ASSIGN_OR_RETURN(host_ops, CreateCpuPassOps(ops, parallel.get(), limits));
  ASSIGN_OR_RETURN(
      host_workspace,
      Workspace::Create(model->config(), options.batch_tokens, 0, cpu.get()));
  return absl::OkStatus();
}

Status EngineCore::StartReading() {
  ASSIGN_OR_RETURN(reader,
                   Reader::Create(model->checkpoint().files(), options.reader));
  std::vector<std::span<std::byte>> buffers;
  if (staging) {
    for (size_t i = 0; i < staging->size(); ++i)
      buffers.push_back(staging->buffer(i));
  } else if (!store.slot_memory().empty()) {
    buffers.push_back(store.slot_memory());
  }
  if (!buffers.empty()) reader->RegisterBuffers(buffers);
  return absl::OkStatus();
}

// What is queued works on memory that is about to go.
EngineCore::~EngineCore() {
  if (compute != nullptr) SettleStream(compute.get());
}

Status EngineCore::RunPasses(PassClient* client, int64_t max_passes) {
  Runner runner(this, client);
  // Only the pass that loads the resident weights has pages to take.
  std::optional<Prefault> prefault, prefault_cpu;
  if (graph->stats().passes == 0) {
    prefault.emplace(vram_plan ? store.host_arena().bytes()
                               : store.resident_memory());
    prefault_cpu.emplace(store.cpu_arena().bytes());
  }
  const Status status = graph->Run(&runner, max_passes, options.cancel);
  // After an error, what a pass has queued must not meet the next one's input.
  if (!status.ok() && compute != nullptr) SettleStream(compute.get());
  return status;
}

EngineStats EngineCore::stats() const {
  const StreamStats stream = graph->stats();
  const ReaderStats read = reader->stats();
  const UploadStats upload =
      uploader != nullptr ? uploader->stats() : UploadStats{};
  const CpuWork cpu_work = decoder->cpu_work();
  return {stream.passes,        stream.units,       read.bytes,
          read.busy_seconds,    stream.run_seconds, stream.compute_seconds,
          stream.stall_seconds, upload.bytes,       upload.busy_seconds,
          cpu_work.units,       cpu_work.seconds};
}

EngineStats Since(const EngineStats& earlier, const EngineStats& now) {
  return {now.passes - earlier.passes,
          now.units - earlier.units,
          now.bytes_from_disk - earlier.bytes_from_disk,
          now.disk_busy_seconds - earlier.disk_busy_seconds,
          now.run_seconds - earlier.run_seconds,
          now.compute_seconds - earlier.compute_seconds,
          now.stall_seconds - earlier.stall_seconds,
          now.bytes_uploaded - earlier.bytes_uploaded,
          now.upload_busy_seconds - earlier.upload_busy_seconds,
          now.cpu_units - earlier.cpu_units,
          now.cpu_seconds - earlier.cpu_seconds};
}

StatusOr<std::unique_ptr<Engine>> Engine::Create(
    std::shared_ptr<const Model> model, const EngineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> core,
                   EngineCore::Create(std::move(model), options));
  return std::unique_ptr<Engine>(new Engine(std::move(core)));
}

Engine::Engine(std::unique_ptr<EngineCore> core) : core_(std::move(core)) {}
Engine::~Engine() = default;

std::unique_ptr<Session> Engine::NewSession() {
  return std::unique_ptr<Session>(new Session(core_.get()));
}

StatusOr<Batcher*> Engine::StartBatcher() {
  const std::lock_guard lock(batcher_mutex_);
  if (stopped_) return absl::CancelledError("the engine was stopped");
  if (batcher_ != nullptr) return batcher_.get();
  const KvBlockPool& pool = core_->cache.pool();
  if (pool.free_count() < pool.block_count()) {
    return absl::FailedPreconditionError(
        "a session holds positions of the KV cache; reset it before requests "
        "are submitted");
  }
  ASSIGN_OR_RETURN(batcher_, Batcher::Create(core_.get()));
  core_->batching = true;
  return batcher_.get();
}

StatusOr<RequestId> Engine::Submit(Request request,
                                   RequestCallbacks callbacks) {
  ASSIGN_OR_RETURN(Batcher* const batcher, StartBatcher());
  return batcher->Submit(std::move(request), std::move(callbacks),
                         Batcher::WhenFull::kWait);
}

StatusOr<RequestId> Engine::TrySubmit(Request request,
                                      RequestCallbacks callbacks) {
  ASSIGN_OR_RETURN(Batcher* const batcher, StartBatcher());
  return batcher->Submit(std::move(request), std::move(callbacks),
                         Batcher::WhenFull::kRefuse);
}

StatusOr<std::future<RequestResult>> Engine::Submit(Request request) {
  auto promise = std::make_shared<std::promise<RequestResult>>();
  std::future<RequestResult> future = promise->get_future();
  RETURN_IF_ERROR(
      Submit(std::move(request), {.on_text = {},
                                  .on_done =
                                      [promise](RequestResult result) {
                                        promise->set_value(std::move(result));
                                      }})
          .status());
  return future;
}

void Engine::Cancel(RequestId id) {
  const std::lock_guard lock(batcher_mutex_);
  if (batcher_ != nullptr) batcher_->Cancel(id);
}

void Engine::Stop() {
  Batcher* batcher = nullptr;
  {
    const std::lock_guard lock(batcher_mutex_);
    stopped_ = true;
    batcher = batcher_.get();
  }
  if (batcher != nullptr) batcher->Stop();
}

void Engine::Drain() {
  Batcher* batcher = nullptr;
  {
    const std::lock_guard lock(batcher_mutex_);
    batcher = batcher_.get();
  }
  if (batcher != nullptr) batcher->Drain();
}

BatchStats Engine::batch_stats() const {
  const std::lock_guard lock(batcher_mutex_);
  return batcher_ != nullptr ? batcher_->stats() : BatchStats{};
}

const Model& Engine::model() const { return *core_->model; }
const MemoryPlan& Engine::plan() const { return core_->plan; }
const MemoryPlan* Engine::vram_plan() const {
  return core_->vram_plan ? &*core_->vram_plan : nullptr;
}
const Placement& Engine::placement() const { return core_->placement; }
const SplitChoice& Engine::split() const { return core_->split; }
const char* Engine::device_name() const { return core_->device->name(); }
uint64_t Engine::pinned_bytes() const {
  const PinnedMemory& arena = core_->store.host_arena();
  return (core_->staging ? core_->staging->pinned_bytes() : 0) +
         (arena.pinned() ? arena.size() : 0);
}
const EngineOptions& Engine::options() const { return core_->options; }
int64_t Engine::context() const { return core_->options.context; }
int Engine::threads() const { return core_->options.threads; }
const char* Engine::isa_name() const { return core_->ops->name; }
const char* Engine::io_backend() const { return core_->reader->backend_name(); }
int Engine::prefetch_depth() const { return core_->options.prefetch_depth; }

bool Engine::direct_io() const {
  const auto files =
      static_cast<int>(core_->model->checkpoint().files().size());
  for (int file = 0; file < files; ++file)
    if (!core_->reader->direct(file)) return false;
  return true;
}

EngineStats Engine::stats() const { return core_->stats(); }

std::vector<std::string> Engine::warnings() const {
  std::vector<std::string> lines = core_->model->checkpoint().warnings();
  for (std::string& line : core_->reader->warnings())
    lines.push_back(std::move(line));
  if (core_->staging && !core_->staging->warning().empty())
    lines.push_back(core_->staging->warning());
  if (const Status& refusal = core_->store.host_arena().refusal();
      !refusal.ok()) {
    lines.push_back(absl::StrFormat(
        "weights in host memory are not pinned, uploads will be slower (%s)",
        MessageOf(refusal)));
  }
  return lines;
}

}  // namespace coldstream
