// A decoder over two sides: halves of layers on a device that does everything
// late and in any legal order, the others on the CPU beside it. The device's
// operations are the CPU's scalar row, so that results must be equal bit for
// bit wherever a half is computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/host_memory.h"
#include "graphs/decoder.h"
#include "tests/support/deferred_device.h"
#include "tests/support/queued_pass_ops.h"
#include "tests/support/same_bits.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMaxTokens = 16;
constexpr int64_t kMaxLogitRows = 4;
constexpr int64_t kContext = 256;
constexpr uint64_t kUnitBytes = 6000;  // a half of a layer is several units

// A model whose units all lie in memory.
struct LoadedModel {
  TempDir dir;
  Checkpoint checkpoint;
  ModelConfig config;
  WeightMap map;
  std::unique_ptr<Reader> reader;
  std::vector<HostMemory> units;
};

StatusOr<std::unique_ptr<LoadedModel>> Load(const TinyModelOptions& options) {
  auto model = std::make_unique<LoadedModel>();
  const std::string path = model->dir.Path("m.gguf");
  RETURN_IF_ERROR(WriteTinyModel(path, options));
  ASSIGN_OR_RETURN(model->checkpoint, Checkpoint::Open(path));
  ASSIGN_OR_RETURN(model->config, LoadModelConfig(model->checkpoint));
  ASSIGN_OR_RETURN(model->map,
                   MapWeights(model->checkpoint, model->config, kUnitBytes));
  ASSIGN_OR_RETURN(model->reader,
                   Reader::Create(model->checkpoint.files(), {}));
  for (const WeightUnit& unit : model->map.units) {
    ASSIGN_OR_RETURN(HostMemory memory,
                     HostMemory::Allocate(unit.buffer_bytes, "a unit"));
    std::vector<ReadWindow> windows;
    AppendWindows(unit, memory.data(), &windows);
    RETURN_IF_ERROR(
        ReadAndWait(*model->reader, windows, ReadPriority::kNormal));
    model->units.push_back(std::move(memory));
  }
  return model;
}

PassLimits LimitsOf(const LoadedModel& model) {
  const ModelConfig& config = model.config;
  const LayerShape& shape = config.layers[0];
  return {.tokens = kMaxTokens,
          .logit_rows = kMaxLogitRows,
          .input_width = std::max(
              {config.hidden, config.max_value_width(), config.max_ffn()}),
          .output_rows = config.vocab_rows,
          .rot_dim = config.rope.rot_dim,
          .blocks = kContext / kKvBlockTokens,
          .heads = shape.heads,
          .key_dim = shape.key_dim,
          .value_dim = shape.value_dim};
}

// What goes wrong at a crossing: the nth call of that kind does nothing.
enum class Crossing { kNone, kCopyIn, kCopyOut, kWait, kFinish };
struct Mutation {
  Crossing call = Crossing::kNone;
  int nth = 0;
};

class MutantPassOps final : public QueuedPassOps {
 public:
  MutantPassOps(Stream* stream, const Mutation& mutation)
      : QueuedPassOps(stream), mutation_(mutation) {}
  Status CopyIn(float* out, const float* host, int64_t n) override {
    if (Drops(Crossing::kCopyIn)) return absl::OkStatus();
    return QueuedPassOps::CopyIn(out, host, n);
  }
  Status CopyOut(float* host, const float* x, int64_t n) override {
    if (Drops(Crossing::kCopyOut)) return absl::OkStatus();
    return QueuedPassOps::CopyOut(host, x, n);
  }
  Status WaitForCopies() override {
    ++waits;
    if (Drops(Crossing::kWait)) return absl::OkStatus();
    return QueuedPassOps::WaitForCopies();
  }
  Status Finish() override {
    if (Drops(Crossing::kFinish)) return absl::OkStatus();
    return QueuedPassOps::Finish();
  }
  int waits = 0;

 private:
  bool Drops(Crossing call) {
    return call == mutation_.call && seen_++ == mutation_.nth;
  }
  const Mutation mutation_;
  int seen_ = 0;
};

// Which halves the CPU computes: attention of the first layers, and FFNs by
// layer in each phase.
struct Split {
  int64_t attention = 0;
  unsigned decode_ffn = 0;   // a bit a layer
  unsigned prefill_ffn = 0;  // a bit a layer
};

Placement PlacementOf(const WeightMap& map, const Split& split) {
  Placement placement;
  for (const Phase phase : kPhases) {
    const unsigned ffn =
        phase == Phase::kDecode ? split.decode_ffn : split.prefill_ffn;
    for (const std::vector<MatrixRows>& unit : map.matrices) {
      bool on_cpu = false;
      if (!unit.empty() && unit.front().kind != MatrixKind::kHead) {
        const int64_t layer = unit.front().layer;
        on_cpu = unit.front().kind < MatrixKind::kGate
                     ? layer < split.attention
                     : (ffn >> layer & 1) != 0;
      }
      placement.of(phase).push_back(on_cpu);
    }
  }
  return placement;
}

// Everything a decoder works on.
class Rig {
 public:
  struct Options {
    bool device = true;  // false: the CPU alone
    Split split = {};
    uint64_t seed = 1;
    DeviceFaults faults = {};
    Mutation mutation = {};
  };
  Rig(LoadedModel* model, const Options& options)
      : model_(*model),
        device_(options.device
                    ? CreateDeferredDevice(
                          {.seed = options.seed, .faults = options.faults})
                    : CreateCpuDevice()),
        stream_(*device_->NewStream()),
        placement_(PlacementOf(model->map, options.split)),
        scalar_(*OpsFor(Isa::kScalar)),
        cache_(*KvCache::Create(model->config, KvType::kF16, kContext,
                                device_.get(), options.split.attention,
                                cpu_.get())),
        work_(*Workspace::Create(model->config, kMaxTokens, kMaxLogitRows,
                                 device_.get())),
        cpu_work_(*Workspace::Create(model->config, kMaxTokens, 0, cpu_.get())),
        embedding_(*EmbeddingRows::Create(
            model->map.embedding, *model->checkpoint.files()[0], kMaxTokens)) {
    const PassLimits limits = LimitsOf(model_);
    cpu_ops_ = *CreateCpuPassOps(scalar_, &parallel_, limits);
    Decoder::Parts parts = {
        &model->config, &model->map,         cpu_ops_.get(),
        scalar_,        model->reader.get(), &cache_,
        &work_,         &embedding_,         model->config.vocab_rows};
    if (options.device) {
      ops_ = std::make_unique<MutantPassOps>(stream_.get(), options.mutation);
      EXPECT_THAT(ops_->Open(scalar_, limits), IsOk());
      parts.ops = ops_.get();
      parts.host = {cpu_ops_.get(), &cpu_work_,
                    model->units[kVectorUnit].data(), &placement_};
    }
    decoder_ = std::make_unique<Decoder>(parts);
  }
  ~Rig() { SettleStream(stream_.get()); }

  // Logits of a prompt of two sequences, in two passes, and of tokens that
  // follow it: passes of both kinds.
  StatusOr<std::vector<float>> Run() {
    std::vector<float> logits;
    RETURN_IF_ERROR(RunPass(9, 3, &logits));
    RETURN_IF_ERROR(RunPass(1, 1, &logits));
    RETURN_IF_ERROR(RunPass(1, 0, &logits));
    RETURN_IF_ERROR(RunPass(0, 12, &logits));
    RETURN_IF_ERROR(RunPass(1, 1, &logits));
    return logits;
  }

  Status RunPass(int64_t a, int64_t b, std::vector<float>* logits,
                 bool want = true) {
    Batch batch;
    RETURN_IF_ERROR(Append(&sequences_[0], a, want, &batch));
    RETURN_IF_ERROR(Append(&sequences_[1], b, want, &batch));
    RETURN_IF_ERROR(
        decoder_->Begin(batch, PhaseOf(static_cast<int64_t>(batch.size()))));
    for (size_t unit = 0; unit < model_.units.size(); ++unit)
      RETURN_IF_ERROR(
          decoder_->RunUnit(static_cast<int>(unit), model_.units[unit].data()));
    RETURN_IF_ERROR(decoder_->End());
    for (int64_t row = 0; row < decoder_->logit_rows(); ++row)
      logits->insert(logits->end(), decoder_->logits(row).begin(),
                     decoder_->logits(row).end());
    return absl::OkStatus();
  }

  // Forgets both sequences, and what a failed pass has queued.
  void Reset() {
    SettleStream(stream_.get());
    for (KvSequence& sequence : sequences_) cache_.Release(&sequence);
    next_id_ = 0;
  }

  int waits() const { return ops_->waits; }
  const Decoder& decoder() const { return *decoder_; }

 private:
  Status Append(KvSequence* sequence, int64_t count, bool want, Batch* batch) {
    RETURN_IF_ERROR(cache_.Reserve(sequence, sequence->length + count));
    for (int64_t i = 0; i < count; ++i) {
      next_id_ = (next_id_ * 31 + 17) % 256;
      batch->push_back(
          {next_id_, sequence->length++, sequence, want && i == count - 1});
    }
    return absl::OkStatus();
  }

  LoadedModel& model_;
  std::unique_ptr<Device> cpu_ = CreateCpuDevice();
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  const Placement placement_;
  const Ops* const scalar_;
  Parallel parallel_{2};
  KvCache cache_;
  Workspace work_;
  Workspace cpu_work_;
  EmbeddingRows embedding_;
  std::unique_ptr<PassOps> cpu_ops_;
  std::unique_ptr<MutantPassOps> ops_;
  std::unique_ptr<Decoder> decoder_;
  KvSequence sequences_[2];
  int32_t next_id_ = 0;
};

constexpr int64_t kLayers = 3;

class SplitDecoderTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto model = Load({.architecture = GetParam(), .layers = kLayers});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *std::move(model);
    auto alone = Rig(model_.get(), {.device = false}).Run();
    ASSERT_THAT(alone.status(), IsOk());
    alone_ = *std::move(alone);
    for (const float logit : alone_) ASSERT_TRUE(std::isfinite(logit));
  }
  std::unique_ptr<LoadedModel> model_;
  std::vector<float> alone_;  // logits, of the CPU alone
};

TEST_P(SplitDecoderTest, EveryPlacementGivesTheBitsOfTheCpuAlone) {
  uint64_t seed = 0;
  for (int64_t attention = 0; attention <= kLayers; ++attention) {
    for (unsigned decode = 0; decode < 1u << kLayers; ++decode) {
      for (unsigned prefill = 0; prefill < 1u << kLayers; ++prefill) {
        const Split split = {attention, decode, prefill};
        Rig rig(model_.get(), {.split = split, .seed = ++seed});
        const auto logits = rig.Run();
        ASSERT_THAT(logits.status(), IsOk());
        EXPECT_TRUE(SameBits(*logits, alone_))
            << attention << " attentions, FFNs " << decode << " and " << prefill
            << ", seed " << seed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SplitDecoderTest,
                         ::testing::Values("llama", "qwen2", "command-r"),
                         [](const auto& architecture) {
                           return architecture.param == std::string("command-r")
                                      ? "command_r"
                                      : std::string(architecture.param);
                         });

std::unique_ptr<LoadedModel> MustLoad(const TinyModelOptions& options) {
  auto model = Load(options);
  EXPECT_THAT(model.status(), IsOk());
  return *std::move(model);
}

TEST(SplitDecoderTest, TheHostWaitsOncePerCrossingToIt) {
  const auto model = MustLoad({.layers = kLayers});
  const auto waits = [&](const Split& split) {
    Rig rig(model.get(), {.split = split});
    std::vector<float> logits;
    EXPECT_THAT(rig.RunPass(1, 0, &logits), IsOk());
    return rig.waits();
  };
  EXPECT_EQ(waits({}), 0);
  EXPECT_EQ(waits({.decode_ffn = 0b101}), 2);
  EXPECT_EQ(waits({.attention = 3, .decode_ffn = 0b111}), 0);  // begins there
  EXPECT_EQ(waits({.attention = 2, .decode_ffn = 0b010}), 1);
  EXPECT_EQ(waits({.prefill_ffn = 0b111}), 0);  // not in this phase
}

TEST(SplitDecoderTest, UnitsOfTheCpuAreCounted) {
  const auto model = MustLoad({.layers = kLayers});
  Rig rig(model.get(), {.split = {.decode_ffn = 0b010}});
  std::vector<float> logits;
  ASSERT_THAT(rig.RunPass(1, 0, &logits), IsOk());
  int64_t units = 0;
  for (const auto& unit : model->map.matrices)
    units += !unit.empty() && unit.front().layer == 1 &&
             unit.front().kind >= MatrixKind::kGate &&
             unit.front().kind < MatrixKind::kHead;
  ASSERT_GT(units, 1);
  EXPECT_EQ(rig.decoder().cpu_work().units, units);
  EXPECT_GT(rig.decoder().cpu_work().seconds, 0);
  ASSERT_THAT(rig.RunPass(12, 0, &logits), IsOk());  // prefill: none
  EXPECT_EQ(rig.decoder().cpu_work().units, units);
}

// A pass that wants no logits ends on the side of the last layer.
TEST(SplitDecoderTest, APassWithoutLogitsMayEndOnTheCpu) {
  const auto model = MustLoad({.layers = kLayers});
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Rig rig(model.get(),
            {.split = {.attention = 1, .decode_ffn = 0b100}, .seed = seed});
    Rig alone(model.get(), {.device = false});
    std::vector<float> got, expected;
    for (Rig* each : {&rig, &alone}) {
      std::vector<float>* logits = each == &rig ? &got : &expected;
      ASSERT_THAT(each->RunPass(3, 0, logits, false), IsOk());
      ASSERT_THAT(each->RunPass(1, 0, logits), IsOk());
    }
    EXPECT_TRUE(SameBits(got, expected)) << "seed " << seed;
  }
}

// Puts `value` at the first place of a layer's last matrix; returns what was
// there.
float PutInto(LoadedModel* model, int64_t layer, float value) {
  for (size_t unit = 1; unit < model->units.size(); ++unit) {
    const MatrixRows& rows = model->map.matrices[unit].back();
    if (rows.kind != MatrixKind::kDown || rows.layer != layer) continue;
    const auto part = static_cast<size_t>(rows.weight.part);
    std::byte* const place =
        model->units[unit].data() + model->map.units[unit].parts[part].offset;
    float before;
    std::memcpy(&before, place, sizeof(before));
    std::memcpy(place, &value, sizeof(value));
    return before;
  }
  ADD_FAILURE() << "no such layer: " << layer;
  return 0;
}

// On either side, the earlier layer is named, and a later pass is none the
// worse for it.
TEST(SplitDecoderTest, ValuesThatAreNotFiniteNameTheFirstLayerOfBothSides) {
  const auto model = MustLoad({.layers = kLayers, .type = DType::kF32});
  const auto alone = Rig(model.get(), {.device = false}).Run();
  ASSERT_THAT(alone.status(), IsOk());
  uint64_t seed = 0;
  for (const unsigned ffn : {0b010u, 0b100u, 0b110u}) {
    Rig rig(model.get(),
            {.split = {.decode_ffn = ffn, .prefill_ffn = ffn}, .seed = ++seed});
    const float before =
        PutInto(model.get(), 1, std::numeric_limits<float>::infinity());
    EXPECT_THAT(rig.Run().status(),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("the output of layer 1 is not finite")));
    PutInto(model.get(), 1, before);
    rig.Reset();
    const auto repaired = rig.Run();
    ASSERT_THAT(repaired.status(), IsOk());
    EXPECT_TRUE(SameBits(*repaired, *alone)) << "FFNs " << ffn;
  }
}

TEST(SplitDecoderTest, ADeviceThatFailsIsThePassesError) {
  const auto model = MustLoad({.layers = kLayers});
  const Split split = {
      .attention = 1, .decode_ffn = 0b010, .prefill_ffn = 0b010};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const int64_t copy : {0, 1, 2, 5}) {
      Rig rig(
          model.get(),
          {.split = split, .seed = seed, .faults = {.fail_copies_from = copy}});
      EXPECT_EQ(rig.Run().status().code(), absl::StatusCode::kInternal)
          << "copy " << copy << ", seed " << seed;
    }
    for (const int64_t kernel : {0, 7, 40}) {
      Rig rig(model.get(), {.split = split,
                            .seed = seed,
                            .faults = {.fail_kernels_from = kernel}});
      EXPECT_EQ(rig.Run().status().code(), absl::StatusCode::kInternal)
          << "kernel " << kernel << ", seed " << seed;
    }
  }
}

struct NamedMutation {
  const char* name;
  const char* architecture;
  Split split;
  Mutation mutation;
};
const Split kFfns = {0, 0b101, 0b101};        // to the CPU and back, twice
const Split kAttentions = {2, 0b000, 0b000};  // the same
const NamedMutation kMutations[] = {
    {"the host does not wait for x", "llama", kFfns, {Crossing::kWait, 0}},
    {"the host does not wait for x: the second time",
     "llama",
     kFfns,
     {Crossing::kWait, 1}},
    {"the host does not wait for x: attention",
     "llama",
     kAttentions,
     {Crossing::kWait, 0}},
    {"x stays on the device", "llama", kFfns, {Crossing::kCopyOut, 0}},
    {"x stays on the host", "llama", kFfns, {Crossing::kCopyIn, 1}},
    {"the norm stays on the device",
     "command-r",
     kFfns,
     {Crossing::kCopyOut, 0}},
    {"the norm stays on the host",
     "command-r",
     kAttentions,
     {Crossing::kCopyIn, 0}},
    {"x stays on the host, the norm does not",
     "command-r",
     kAttentions,
     {Crossing::kCopyIn, 1}},
    {"the host does not wait for x and the norm",
     "command-r",
     kFfns,
     {Crossing::kWait, 0}},
    {"the pass ends before the device has",
     "llama",
     kFfns,
     {Crossing::kFinish, 0}},
};

TEST(SplitDecoderTest, EachStepOfACrossingIsNeeded) {
  for (const NamedMutation& each : kMutations) {
    const auto model =
        MustLoad({.architecture = each.architecture, .layers = kLayers});
    const auto alone = Rig(model.get(), {.device = false}).Run();
    ASSERT_THAT(alone.status(), IsOk());
    int caught = 0;
    constexpr int kSeeds = 30;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Rig rig(model.get(),
              {.split = each.split, .seed = seed, .mutation = each.mutation});
      const auto logits = rig.Run();
      caught += !logits.ok() || !SameBits(*logits, *alone);
    }
    EXPECT_GT(caught, 0) << each.name;
    RecordProperty(each.name, caught);
    std::printf("%2d of %d seeds: %s\n", caught, kSeeds, each.name);
  }
}

}  // namespace
}  // namespace coldstream
