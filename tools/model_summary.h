// Where a model's bytes are: per layer with attention and FFN apart, embedding
// and head apart, and per type. Works from tensor names, so it also describes
// models that Coldstream cannot run.
#ifndef COLDSTREAM_TOOLS_MODEL_SUMMARY_H_
#define COLDSTREAM_TOOLS_MODEL_SUMMARY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "io/checkpoint.h"

namespace coldstream {

struct LayerBytes {
  int64_t layer = 0;
  uint64_t attention = 0;  // blk.N.attn*
  uint64_t ffn = 0;        // blk.N.ffn*
  uint64_t other = 0;      // the rest of blk.N

  uint64_t total() const { return attention + ffn + other; }
};

struct TypeTotal {
  DType type = DType::kF32;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

struct ModelSummary {
  std::vector<LayerBytes> layers;  // in order of number, those that occur
  uint64_t embedding = 0;          // token_embd*
  uint64_t head = 0;               // output.*; 0 where the embedding serves
  uint64_t other = 0;              // output_norm, rope_freqs, ...
  std::vector<TypeTotal> types;    // in order of id, those that occur
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

ModelSummary Summarise(std::span<const TensorInfo> tensors);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_MODEL_SUMMARY_H_
