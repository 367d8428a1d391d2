// Which type each tensor of a quantised model has: one type for all, or the
// mixes that model files are commonly published in ("q4_k_m").
//
// Norms and biases are always F32. A row that is not a whole number of blocks
// falls back to a type with smaller blocks, as converters do.
// Source: the files llama.cpp's quantiser writes for these names (their tensor
// types are facts of published models, e.g. Llama-3-8B Q4_K_M).
#ifndef COLDSTREAM_TOOLS_QUANT_MIX_H_
#define COLDSTREAM_TOOLS_QUANT_MIX_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "base/status.h"

namespace coldstream {

// What a weight matrix is for, as far as the mixes tell them apart.
enum class WeightRole {
  kEmbedding,
  kHead,  // the output matrix; the embedding too where the two are one
  kAttentionQk,
  kAttentionV,
  kAttentionOutput,
  kFfnGateUp,
  kFfnDown,
};

struct WeightPlace {
  WeightRole role = WeightRole::kEmbedding;
  int64_t layer = 0;  // of `layers`; ignored for embedding and head
  int64_t layers = 1;
  int64_t heads_per_kv_head = 1;
};

class QuantMix {
 public:
  // "q4_k_m", "q8_0", "f16", case ignored. InvalidArgument lists the names.
  static StatusOr<QuantMix> FromName(std::string_view name);

  // "f32, f16, ..., q3_k_m, q4_k_m, q5_k_m".
  static std::string Names();

  const std::string& name() const { return name_; }
  // The value of general.file_type.
  uint32_t file_type() const { return file_type_; }

  // The type wanted at `place`, before FallbackFor.
  DType TypeFor(const WeightPlace& place) const;

 private:
  enum class Rule { kUniform, kQ3M, kQ4M, kQ5M };

  std::string name_;
  uint32_t file_type_ = 0;
  DType base_ = DType::kF32;
  Rule rule_ = Rule::kUniform;
};

// `type` if rows of `cols` elements are whole blocks of it, else the nearest
// type for which they are: q2_k, q3_k, iq4_xs -> iq4_nl, q4_k -> q5_0, q5_k ->
// q5_1, q6_k -> q8_0; and f16 where `cols` is no multiple of 32 either.
DType FallbackFor(DType type, uint64_t cols);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_QUANT_MIX_H_
