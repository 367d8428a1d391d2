#include "runtime/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "runtime/engine_core.h"
#include "runtime/session.h"

namespace coldstream {
namespace {

// Code, libraries, stacks, the arena, the ring and the heap's slack: measured 9
// to 11 MiB with two threads and everything else accounted for
// (tests/tools/run_command_test.cc holds the real peak against the cap).
constexpr uint64_t kProcessBytes = uint64_t{14} << 20;
constexpr uint64_t kThreadBytes = uint64_t{256} << 10;

// Left to others when the budget is the machine's own: 1/16, at least 64 MiB.
uint64_t HeadRoom(uint64_t available) {
  return std::max(available / 16, uint64_t{64} << 20);
}

constexpr int64_t kDefaultContext = 4096;

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

const File& EmbeddingFile(const Model& model) {
  return *model.checkpoint().files()[static_cast<size_t>(
      model.weights().embedding.extent.file)];
}

}  // namespace

DefaultBudget DefaultRamBudget() {
  const MemoryLimit limit = AvailableMemory();
  const uint64_t head_room = HeadRoom(limit.bytes);
  return {limit.bytes > head_room ? limit.bytes - head_room : 0, limit.source};
}

Status EngineCore::FillDefaults() {
  const ModelConfig& config = model->config();
  if (options.ram_bytes == 0) options.ram_bytes = DefaultRamBudget().bytes;
  if (options.threads == 0) options.threads = DefaultThreads();
  if (options.context == 0)
    options.context = std::min(kDefaultContext, config.train_context);
  const auto check = [](const char* what, int64_t value, int64_t low,
                        int64_t high) -> Status {
    if (value >= low && value <= high) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is %d, expected %d..%d", what, value, low, high));
  };
  RETURN_IF_ERROR(check("the thread count", options.threads, 1, 1024));
  RETURN_IF_ERROR(check("the context", options.context, 1, int64_t{1} << 31));
  RETURN_IF_ERROR(
      check("the batch size", options.batch_tokens, 1, int64_t{1} << 20));
  RETURN_IF_ERROR(check("the number of logit rows", options.logit_rows, 1,
                        options.batch_tokens));
  // A pass cannot hold more tokens than the context.
  options.batch_tokens = std::min(options.batch_tokens, options.context);
  options.logit_rows = std::min(options.logit_rows, options.batch_tokens);
  return absl::OkStatus();
}

StatusOr<FixedMemory> EngineCore::CountFixedMemory() const {
  const ModelConfig& config = model->config();
  FixedMemory fixed;
  fixed.process =
      kProcessBytes + kThreadBytes * static_cast<uint64_t>(options.threads);
  fixed.tokenizer = model->memory_bytes();
  fixed.kv = KvCache::BytesFor(config, options.context);
  fixed.activations =
      Workspace::BytesFor(config, options.batch_tokens, options.logit_rows) +
      EmbeddingRows::BytesFor(model->weights().embedding, EmbeddingFile(*model),
                              options.batch_tokens);
  return fixed;
}

StatusOr<std::unique_ptr<EngineCore>> EngineCore::Create(
    std::shared_ptr<const Model> model, const EngineOptions& options) {
  std::unique_ptr<EngineCore> core(new EngineCore);
  core->model = std::move(model);
  core->options = options;
  RETURN_IF_ERROR(core->FillDefaults());
  const EngineOptions& filled = core->options;
  const ModelConfig& config = core->model->config();
  const WeightMap& weights = core->model->weights();
  ASSIGN_OR_RETURN(core->ops, options.isa ? OpsFor(*options.isa) : SelectOps());

  ASSIGN_OR_RETURN(const FixedMemory fixed, core->CountFixedMemory());
  ASSIGN_OR_RETURN(core->plan,
                   PlanMemory(weights.units, fixed, filled.ram_bytes,
                              filled.prefetch_depth));
  core->device = CreateCpuDevice();
  ASSIGN_OR_RETURN(core->store, WeightStore::Create(weights.units, core->plan,
                                                    core->device.get()));
  ASSIGN_OR_RETURN(core->cache, KvCache::Create(config, filled.context));
  ASSIGN_OR_RETURN(
      core->workspace,
      Workspace::Create(config, filled.batch_tokens, filled.logit_rows));
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
  core->decoder = std::make_unique<Decoder>(Decoder::Parts{
      &config, &weights, core->ops, core->parallel.get(), core->reader.get(),
      &core->cache, &core->workspace, &core->embedding});
  core->graph = std::make_unique<StreamGraph>(
      StreamGraph::Parts{core->parallel.get(), core->reader.get(), &core->store,
                         filled.prefetch_depth, filled.trace});
  return core;
}

Status EngineCore::RunPasses(PassClient* client, int64_t max_passes) {
  Runner runner(this, client);
  return graph->Run(&runner, max_passes, options.cancel);
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

EngineStats Engine::stats() const {
  const StreamStats graph = core_->graph->stats();
  const ReaderStats reader = core_->reader->stats();
  return {graph.passes,        graph.units,       reader.bytes,
          reader.busy_seconds, graph.run_seconds, graph.compute_seconds,
          graph.stall_seconds};
}

std::vector<std::string> Engine::warnings() const {
  std::vector<std::string> lines = core_->model->checkpoint().warnings();
  for (std::string& line : core_->reader->warnings())
    lines.push_back(std::move(line));
  return lines;
}

}  // namespace coldstream
