#include "graphs/weight_map.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "graphs/unit_cutter.h"

namespace coldstream {
namespace {

// Gaps up to this size are read along with their neighbours.
constexpr uint64_t kMaxGapBytes = 64 << 10;

// Takes tensors from the checkpoint, checks their shapes and remembers which
// were taken.
class TensorTaker {
 public:
  explicit TensorTaker(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint) {}

  // Tensor `name`, of shape [cols] or [cols, rows].
  StatusOr<const TensorInfo*> Take(const std::string& name, int64_t cols,
                                   int64_t rows) {
    ASSIGN_OR_RETURN(const TensorInfo* tensor, checkpoint_.Get(name));
    if (tensor->cols() != cols || tensor->rows() != rows) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tensor %s has shape [%d, %d], expected [%d, %d]",
                          name, tensor->cols(), tensor->rows(), cols, rows));
    }
    taken_.insert(name);
    return tensor;
  }

  // Adds vector `name` to the unit.
  StatusOr<WeightRef> TakeVector(const std::string& name, int64_t length,
                                 WeightUnit* unit) {
    ASSIGN_OR_RETURN(const TensorInfo* tensor, Take(name, length, 1));
    unit->parts.push_back({tensor->extent, 0});
    return WeightRef{static_cast<int>(unit->parts.size()) - 1, tensor->type, 1,
                     length};
  }

  StatusOr<WeightRef> TakeVectorIfThere(const std::string& name, int64_t length,
                                        WeightUnit* unit) {
    if (checkpoint_.Find(name) == nullptr) return WeightRef{};
    return TakeVector(name, length, unit);
  }

  void MarkTaken(const std::string& name) { taken_.insert(name); }

  Status CheckAllTaken() const {
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      if (taken_.contains(tensor.name)) continue;
      return absl::UnimplementedError(absl::StrFormat(
          "tensor %s is not used by this architecture; running without it "
          "would give wrong results",
          tensor.name));
    }
    return absl::OkStatus();
  }

 private:
  const Checkpoint& checkpoint_;
  std::set<std::string, std::less<>> taken_;
};

StatusOr<LayerVectors> MapVectors(const std::string& prefix,
                                  const ModelConfig& config,
                                  const LayerShape& shape, TensorTaker* taker,
                                  WeightUnit* unit) {
  const int64_t hidden = config.hidden;
  LayerVectors vectors;
  ASSIGN_OR_RETURN(
      vectors.attn_norm,
      taker->TakeVector(prefix + "attn_norm.weight", hidden, unit));
  if (!config.architecture->parallel_residual) {
    ASSIGN_OR_RETURN(
        vectors.ffn_norm,
        taker->TakeVector(prefix + "ffn_norm.weight", hidden, unit));
  }
  const auto bias = [&](const char* name, int64_t width) {
    return config.architecture->qkv_bias
               ? taker->TakeVector(prefix + name, width, unit)
               : taker->TakeVectorIfThere(prefix + name, width, unit);
  };
  const int64_t k_width = shape.kv_heads * shape.key_dim;
  const int64_t v_width = shape.kv_heads * shape.value_dim;
  ASSIGN_OR_RETURN(vectors.q_bias,
                   bias("attn_q.bias", shape.heads * shape.key_dim));
  ASSIGN_OR_RETURN(vectors.k_bias, bias("attn_k.bias", k_width));
  ASSIGN_OR_RETURN(vectors.v_bias, bias("attn_v.bias", v_width));
  ASSIGN_OR_RETURN(
      vectors.attn_output_bias,
      taker->TakeVectorIfThere(prefix + "attn_output.bias", hidden, unit));
  return vectors;
}

// A matrix by the name it has in the file and the shape it must have.
struct MatrixSpec {
  MatrixKind kind;
  const char* name;
  int64_t cols;
  int64_t rows;
};

StatusOr<std::vector<Matrix>> TakeMatrices(const std::string& prefix,
                                           int64_t layer,
                                           std::span<const MatrixSpec> specs,
                                           TensorTaker* taker) {
  std::vector<Matrix> matrices;
  for (const MatrixSpec& spec : specs) {
    ASSIGN_OR_RETURN(const TensorInfo* tensor,
                     taker->Take(prefix + spec.name, spec.cols, spec.rows));
    matrices.push_back({spec.kind, layer, tensor});
  }
  return matrices;
}

Status MapLayer(int64_t layer, const ModelConfig& config, uint64_t unit_bytes,
                TensorTaker* taker, WeightMap* map) {
  const std::string prefix = absl::StrFormat("blk.%d.", layer);
  const LayerShape& shape = config.layers[static_cast<size_t>(layer)];
  const int64_t hidden = config.hidden;
  ASSIGN_OR_RETURN(
      map->layers[static_cast<size_t>(layer)],
      MapVectors(prefix, config, shape, taker, &map->units[kVectorUnit]));
  const MatrixSpec attention[] = {
      {MatrixKind::kQ, "attn_q.weight", hidden, shape.heads * shape.key_dim},
      {MatrixKind::kK, "attn_k.weight", hidden, shape.kv_heads * shape.key_dim},
      {MatrixKind::kV, "attn_v.weight", hidden,
       shape.kv_heads * shape.value_dim},
      {MatrixKind::kAttnOutput, "attn_output.weight",
       shape.heads * shape.value_dim, hidden}};
  const MatrixSpec ffn[] = {
      {MatrixKind::kGate, "ffn_gate.weight", hidden, shape.ffn},
      {MatrixKind::kUp, "ffn_up.weight", hidden, shape.ffn},
      {MatrixKind::kDown, "ffn_down.weight", shape.ffn, hidden}};
  ASSIGN_OR_RETURN(const std::vector<Matrix> first,
                   TakeMatrices(prefix, layer, attention, taker));
  CutIntoUnits(prefix + "attention", first, unit_bytes, map);
  ASSIGN_OR_RETURN(const std::vector<Matrix> second,
                   TakeMatrices(prefix, layer, ffn, taker));
  CutIntoUnits(prefix + "ffn", second, unit_bytes, map);
  return absl::OkStatus();
}

// The embedding table and the head, which may be one tensor.
Status MapEnds(const Checkpoint& checkpoint, const ModelConfig& config,
               uint64_t unit_bytes, TensorTaker* taker, WeightMap* map) {
  ASSIGN_OR_RETURN(
      const TensorInfo* embedding,
      taker->Take("token_embd.weight", config.hidden, config.vocab_rows));
  map->embedding = {embedding->extent, embedding->type, embedding->rows(),
                    embedding->cols()};
  map->tied = checkpoint.Find("output.weight") == nullptr;
  Matrix head = {MatrixKind::kHead, 0, embedding};
  if (!map->tied) {
    ASSIGN_OR_RETURN(head.tensor, taker->Take("output.weight", config.hidden,
                                              config.vocab_rows));
  }
  CutIntoUnits("output", {&head, 1}, unit_bytes, map);
  return absl::OkStatus();
}

void LayOutUnits(const Checkpoint& checkpoint, WeightMap* map) {
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> alignments;
  for (const auto& file : checkpoint.files()) {
    sizes.push_back(file->size());
    alignments.push_back(file->window_alignment());
  }
  for (WeightUnit& unit : map->units)
    LayOutUnit(sizes, alignments, kMaxGapBytes, &unit);
}

}  // namespace

uint64_t WeightMap::weight_bytes() const {
  uint64_t bytes = 0;
  for (const WeightUnit& unit : units) bytes += unit.weight_bytes();
  return bytes;
}

StatusOr<WeightMap> MapWeights(const Checkpoint& checkpoint,
                               const ModelConfig& config, uint64_t unit_bytes) {
  WeightMap map;
  TensorTaker taker(checkpoint);
  WeightUnit vectors;
  vectors.name = "vectors";
  vectors.pinned = true;
  map.units.push_back(std::move(vectors));
  map.matrices.emplace_back();
  map.layers.resize(config.layers.size());
  for (int64_t layer = 0; layer < config.layer_count(); ++layer)
    RETURN_IF_ERROR(MapLayer(layer, config, unit_bytes, &taker, &map));
  ASSIGN_OR_RETURN(map.final_norm,
                   taker.TakeVector("output_norm.weight", config.hidden,
                                    &map.units[kVectorUnit]));
  RETURN_IF_ERROR(MapEnds(checkpoint, config, unit_bytes, &taker, &map));
  if (!config.rope.frequency_divisors.empty())
    taker.MarkTaken("rope_freqs.weight");
  RETURN_IF_ERROR(taker.CheckAllTaken());
  LayOutUnits(checkpoint, &map);
  return map;
}

TensorView Resolve(const WeightRef& ref, const WeightUnit& unit,
                   const std::byte* buffer) {
  CHECK(ref.present());
  return {ref.type, buffer + unit.parts[static_cast<size_t>(ref.part)].offset,
          ref.rows, ref.cols};
}

}  // namespace coldstream
