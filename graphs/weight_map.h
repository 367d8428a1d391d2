// A model's tensors as weight units, in the order a pass uses them.
//
// Unit 0 holds every vector (norms and biases) and is always in memory. The
// rest are rows of matrices: a layer's attention half, its FFN half and the
// output head, each cut by rows into even units of at most about a given size,
// so that a slot need not hold half a layer. The embedding table is no unit:
// only the rows of the tokens at hand are read.
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

// Of the unit of vectors.
struct LayerVectors {
  WeightRef attn_norm, ffn_norm;  // ffn_norm: not with a parallel residual
  WeightRef q_bias, k_bias, v_bias, attn_output_bias;  // optional
};

// In the order a pass uses them.
enum class MatrixKind { kQ, kK, kV, kAttnOutput, kGate, kUp, kDown, kHead };

// Consecutive rows of a matrix, inside a unit.
struct MatrixRows {
  MatrixKind kind = MatrixKind::kQ;
  int64_t layer = 0;      // 0 for the head
  int64_t row_begin = 0;  // of the matrix; weight.rows of them
  bool last = false;      // up to the matrix's last row
  WeightRef weight;
};

struct EmbeddingTable {
  Extent extent;
  DType type = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
};

inline constexpr int kVectorUnit = 0;

struct WeightMap {
  std::vector<WeightUnit> units;
  std::vector<std::vector<MatrixRows>> matrices;  // by unit; none in unit 0
  std::vector<LayerVectors> layers;
  WeightRef final_norm;  // of unit 0
  EmbeddingTable embedding;
  bool tied = false;  // the head is the embedding table

  // Bytes of weights a pass touches (the head once, the embedding not).
  uint64_t weight_bytes() const;
};

// 16 MiB are 10 ms of a fast disk: large against what a unit costs to start,
// small against a budget.
inline constexpr uint64_t kDefaultUnitBytes = uint64_t{16} << 20;

// `unit_bytes`: a unit ends at the first multiple of 64 rows past an even share
// that is at most this. Errors: NotFound (tensor missing), InvalidArgument
// (shape: tensor, expected, got), Unimplemented (a tensor the graph does not
// use).
StatusOr<WeightMap> MapWeights(const Checkpoint& checkpoint,
                               const ModelConfig& config,
                               uint64_t unit_bytes = kDefaultUnitBytes);

// The tensor behind `ref`, given its unit and the unit's buffer.
TensorView Resolve(const WeightRef& ref, const WeightUnit& unit,
                   const std::byte* buffer);

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_WEIGHT_MAP_H_
