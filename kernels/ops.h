// The table of operations: every kernel the decoder calls, one row per ISA.
//
// The scalar row is the specification; the AVX2 and AVX-512 rows override what
// they have. Inside matmul, the weight type indexes a second table. Kernels are
// single-threaded over a range of rows or items; callers go wide through
// base/parallel.h.
//
// Promise (tested): within one row of the table a token's results do not depend
// on how many other tokens share the call, on the range boundaries, or on the
// thread count, bit for bit. A token's sums therefore run in one fixed order in
// the one-token and the many-token kernel alike. Rows of the table may differ
// from one another in the last bits.
//
// Shapes are [outer, ..., inner], row-major floats unless said otherwise.
#ifndef COLDSTREAM_KERNELS_OPS_H_
#define COLDSTREAM_KERNELS_OPS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "base/dtype.h"
#include "base/status.h"
#include "base/tensor_view.h"
#include "kernels/kv_type.h"

namespace coldstream {

// How a row of activations is stored for a matrix product.
enum class ActivationFormat : uint8_t {
  kF32,     // as it is: F32, F16 and BF16 weights
  kQ8_32,   // int8, one scale per 32 values: the 32-value weight blocks
  kQ8_256,  // int8, one scale per 256 values: the K-quants and IQ4_XS
};
inline constexpr size_t kActivationFormats = 3;

// Bytes of one activation row of k values, a multiple of 64. See
// kernels/activations.h for the layout.
uint64_t ActivationRowBytes(ActivationFormat format, int64_t k);

// out[t, r] = sum over i of weight[r, i] * x[t, i].
struct MatmulArgs {
  TensorView weight;                       // [rows, k]
  const std::byte* activations = nullptr;  // [tokens], in the type's format
  uint64_t activation_stride = 0;          // bytes from one token to the next
  int64_t tokens = 0;
  float* out = nullptr;    // [tokens, out_stride]
  int64_t out_stride = 0;  // floats from one token to the next
};

struct MatmulKernel {
  ActivationFormat format = ActivationFormat::kF32;
  // Computes rows [row_begin, row_end) for all tokens.
  void (*rows)(const MatmulArgs& args, int64_t row_begin,
               int64_t row_end) = nullptr;
  // Exact values of one row (or part of one: n is a multiple of the block).
  void (*dequantize)(const std::byte* row, int64_t n, float* out) = nullptr;
};

enum class NormKind : uint8_t { kRms, kLayer };

// Which elements RoPE rotates together (d = rotated width).
enum class RopePairing : uint8_t {
  kAdjacent,  // (0,1), (2,3), ...: GGUF "llama", "command-r"
  kHalves,    // (i, i + d/2): GGUF "qwen2" ("neox")
};

// Where one token looks. Block b holds positions [64 b, 64 b + 64) of its
// sequence, for one layer: tiles [kv_heads] (kernels/kv_type.h).
struct AttentionToken {
  int64_t position = 0;  // attends to keys 0..position, its own included
  const std::byte* const* key_blocks = nullptr;
  const std::byte* const* value_blocks = nullptr;
};

// out[t, h] = softmax(scale * q[t, h] . K) V, grouped-query: head h reads KV
// head h / (heads / kv_heads). Online softmax over tiles of kKvBlockTokens keys
// that begin at multiples of kKvBlockTokens, so that a token's sums do not
// depend on the chunk it came in. Scores and sums are float32 throughout.
// Source: Milakov & Gimelshein 2018 (arXiv 1805.02867).
struct AttentionArgs {
  const float* q = nullptr;  // [tokens, heads, key_dim]
  float* out = nullptr;      // [tokens, heads, value_dim]
  const AttentionToken* tokens = nullptr;
  int64_t token_count = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  float scale = 1;
  KvType kv_type = KvType::kF16;  // kQ8_0: dims at most kMostQ8KvDim
};

// Work items of an attention call: kv_heads times tiles of this many tokens,
// item = kv_head * token_tiles + tile.
inline constexpr int64_t kAttentionTokenTile = 8;
inline int64_t AttentionItems(const AttentionArgs& args) {
  return args.kv_heads *
         ((args.token_count + kAttentionTokenTile - 1) / kAttentionTokenTile);
}

struct Ops {
  Isa isa = Isa::kScalar;
  // More than the ISA's name where it matters, e.g. "avx512-vnni".
  const char* name = "scalar";

  std::array<MatmulKernel, kDTypeIdLimit> matmul = {};

  // One activation row from k floats; k is a multiple of the format's block.
  std::array<void (*)(const float* x, int64_t k, std::byte* out),
             kActivationFormats>
      quantize = {};

  // out = x / sqrt(mean(x^2) + eps) * weight. In place allowed.
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n,
                   float* out) = nullptr;
  // out = (x - mean) / sqrt(var + eps) * weight + bias; bias may be null.
  void (*layer_norm)(const float* x, const float* weight, const float* bias,
                     float eps, int64_t n, float* out) = nullptr;
  // Rotates heads [heads, head_dim] of one token in place; the first rot_dim
  // values of each head. cos_sin: [rot_dim / 2][2] for the token's position.
  void (*rope)(float* x, int64_t heads, int64_t head_dim, int64_t rot_dim,
               const float* cos_sin, RopePairing pairing) = nullptr;
  // Items [item_begin, item_end) of AttentionItems(args).
  void (*attention)(const AttentionArgs& args, int64_t item_begin,
                    int64_t item_end) = nullptr;
  // out = gate / (1 + exp(-gate)) * up. In place on either allowed.
  void (*swiglu)(const float* gate, const float* up, int64_t n,
                 float* out) = nullptr;
  // out += x.
  void (*add)(const float* x, int64_t n, float* out) = nullptr;
  // x *= factor.
  void (*scale)(float factor, int64_t n, float* x) = nullptr;
  // Round to nearest even, as base/half.h.
  void (*to_f16)(const float* x, int64_t n, uint16_t* out) = nullptr;
  // True if every value is finite.
  bool (*all_finite)(const float* x, int64_t n) = nullptr;

  const MatmulKernel& MatmulFor(DType type) const {
    return matmul[static_cast<size_t>(type)];
  }
};

// The row of the table for `isa`. Unavailable, naming the missing feature, if
// this CPU cannot run it: never SIGILL.
StatusOr<const Ops*> OpsFor(Isa isa);

// The best row for this CPU, or the one the environment variable COLDSTREAM_ISA
// names (scalar, avx2, avx512). InvalidArgument for another name.
StatusOr<const Ops*> SelectOps();

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_OPS_H_
