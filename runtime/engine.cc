#include "runtime/engine.h"

#include <optional>
#include <utility>

#include "base/prefault.h"
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
                  [&] { return core_.decoder->Begin(batch_); });
  }
  Status RunUnit(int unit, const std::byte* weights) override {
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
  const EngineOptions& filled = core->options;
  const ModelConfig& config = core->model->config();
  const WeightMap& weights = core->model->weights();
  ASSIGN_OR_RETURN(core->ops, options.isa ? OpsFor(*options.isa) : SelectOps());

  core->device = CreateCpuDevice();
  ASSIGN_OR_RETURN(core->store, WeightStore::Create(weights.units, core->plan,
                                                    core->device.get()));
  Device* const device = core->device.get();
  ASSIGN_OR_RETURN(core->cache,
                   KvCache::Create(config, filled.context, device));
  ASSIGN_OR_RETURN(core->workspace,
                   Workspace::Create(config, filled.batch_tokens,
                                     filled.logit_rows, device));
  ASSIGN_OR_RETURN(
      core->embedding,
      EmbeddingRows::Create(weights.embedding, EmbeddingFile(*core->model),
                            filled.batch_tokens));
  ASSIGN_OR_RETURN(
      core->reader,
      Reader::Create(core->model->checkpoint().files(), filled.reader));
  if (const std::span<std::byte> slots = core->store.slot_memory();
      !slots.empty())
    core->reader->RegisterBuffers({&slots, 1});

  core->parallel = std::make_unique<Parallel>(filled.threads);
  ASSIGN_OR_RETURN(core->pass_ops,
                   CreateCpuPassOps(core->ops, core->parallel.get(),
                                    LimitsOfPass(*core->model, filled)));
  core->decoder = std::make_unique<Decoder>(Decoder::Parts{
      &config, &weights, core->pass_ops.get(), core->ops, core->reader.get(),
      &core->cache, &core->workspace, &core->embedding});
  core->graph = std::make_unique<StreamGraph>(
      StreamGraph::Parts{.parallel = core->parallel.get(),
                         .reader = core->reader.get(),
                         .store = &core->store,
                         .prefetch_depth = filled.prefetch_depth,
                         .uploader = nullptr,
                         .trace = filled.trace});
  return core;
}

Status EngineCore::RunPasses(PassClient* client, int64_t max_passes) {
  Runner runner(this, client);
  // Only the pass that loads the resident weights has pages to take.
  std::optional<Prefault> prefault;
  if (graph->stats().passes == 0) prefault.emplace(store.resident_memory());
  return graph->Run(&runner, max_passes, options.cancel);
}

EngineStats EngineCore::stats() const {
  const StreamStats stream = graph->stats();
  const ReaderStats read = reader->stats();
  return {stream.passes,       stream.units,       read.bytes,
          read.busy_seconds,   stream.run_seconds, stream.compute_seconds,
          stream.stall_seconds};
}

EngineStats Since(const EngineStats& earlier, const EngineStats& now) {
  return {now.passes - earlier.passes,
          now.units - earlier.units,
          now.bytes_from_disk - earlier.bytes_from_disk,
          now.disk_busy_seconds - earlier.disk_busy_seconds,
          now.run_seconds - earlier.run_seconds,
          now.compute_seconds - earlier.compute_seconds,
          now.stall_seconds - earlier.stall_seconds};
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

const Model& Engine::model() const { return *core_->model; }
const MemoryPlan& Engine::plan() const { return core_->plan; }
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
  return lines;
}

}  // namespace coldstream
