// A model's tensors as weight units, in the order a pass uses them: per layer
// an attention half and an FFN half, then the final norm (always in memory) and
// the output head, cut by rows into units no larger than the layers'. The
// embedding table is no unit: only the rows of the tokens at hand are read.
//
// Every tensor of the checkpoint is used, or named in an error: one that the
// graph ignores would give fluent nonsense.
#ifndef COLDSTREAM_GRAPHS_WEIGHT_MAP_H_
#define COLDSTREAM_GRAPHS_WEIGHT_MAP_H_

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"
#include "graphs/model_config.h"
#include "io/checkpoint.h"
#include "scheduler/weight_unit.h"

namespace coldstream {

// A tensor (or rows of one) inside a unit.
struct WeightRef {
  int part = -1;  // of its unit; -1: the model has no such tensor
  DType type = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  bool present() const { return part >= 0; }
};

struct LayerWeights {
  WeightRef attn_norm, q, k, v, attn_output;           // of the attention unit
  WeightRef q_bias, k_bias, v_bias, attn_output_bias;  // optional
  WeightRef ffn_norm, gate, up, down;                  // of the FFN unit
};

enum class UnitKind { kAttention, kFfn, kFinalNorm, kHead };

struct UnitRole {
  UnitKind kind = UnitKind::kAttention;
  int64_t layer = 0;           // kAttention, kFfn
  int64_t head_row_begin = 0;  // kHead
  WeightRef weight;            // kFinalNorm, kHead
};

struct EmbeddingTable {
  Extent extent;
  DType type = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
};

struct WeightMap {
  std::vector<WeightUnit> units;
  std::vector<UnitRole> roles;  // one per unit
  std::vector<LayerWeights> layers;
  EmbeddingTable embedding;
  bool tied = false;  // the head is the embedding table

  // Bytes of weights a pass touches (the head once, the embedding not).
  uint64_t weight_bytes() const;
};

// Errors: NotFound (tensor missing), InvalidArgument (shape: tensor, expected,
// got), Unimplemented (a tensor the graph does not use).
StatusOr<WeightMap> MapWeights(const Checkpoint& checkpoint,
                               const ModelConfig& config);

// The tensor behind `ref`, given its unit and the unit's buffer.
TensorView Resolve(const WeightRef& ref, const WeightUnit& unit,
                   const std::byte* buffer);

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_WEIGHT_MAP_H_
