#include "kernels/matmul.h"

#include "base/check.h"

namespace coldstream {
namespace {

// Rows a thread takes at a time: whole row tiles of the AVX-512 kernels, and
// long runs, because a kernel fetches ahead within a run; but eight turns for
// each thread, so that none waits long for another.
constexpr int64_t kRowTile = 16;
constexpr int64_t kTurns = 8;

int64_t RowGrain(int64_t rows, int threads) {
  const int64_t tiles = rows / (kTurns * threads * kRowTile);
  return kRowTile * (tiles > 1 ? tiles : 1);
}

constexpr ActivationFormat kQuantized[] = {ActivationFormat::kQ8_32,
                                           ActivationFormat::kQ8_256};

}  // namespace

uint64_t ActivationRowBytes(ActivationFormat format, int64_t k) {
  const uint64_t n = static_cast<uint64_t>(k);
  uint64_t bytes = 4 * n;
  if (format == ActivationFormat::kQ8_32) {
    const uint64_t blocks = (n + 31) / 32;
    bytes = blocks * (32 + 3 * 4);
  } else if (format == ActivationFormat::kQ8_256) {
    const uint64_t blocks = (n + 255) / 256;
    bytes = blocks * (256 + 16 * 2 + 8 * 2 + 4);
  }
  // An odd number of cache lines: the same values of many tokens then fall
  // into different sets of the cache.
  return (bytes + 63) / 64 / 2 * 128 + 64;
}

uint64_t Activations::BytesFor(int64_t max_tokens, int64_t max_k) {
  uint64_t bytes = 0;
  for (const ActivationFormat format : kQuantized)
    bytes +=
        static_cast<uint64_t>(max_tokens) * ActivationRowBytes(format, max_k);
  return bytes;
}

StatusOr<Activations> Activations::Create(int64_t max_tokens, int64_t max_k) {
  Activations activations;
  ASSIGN_OR_RETURN(
      activations.memory_,
      HostMemory::Allocate(BytesFor(max_tokens, max_k), "activations"));
  std::byte* next = activations.memory_.data();
  for (const ActivationFormat format : kQuantized) {
    activations.rows_[static_cast<size_t>(format)] = next;
    next +=
        static_cast<uint64_t>(max_tokens) * ActivationRowBytes(format, max_k);
  }
  activations.max_tokens_ = max_tokens;
  activations.max_k_ = max_k;
  return activations;
}

void Activations::Set(const float* x, int64_t tokens, int64_t k,
                      int64_t stride) {
  CHECK(tokens >= 0 && tokens <= max_tokens_ && k <= max_k_ && stride >= k);
  x_ = x;
  tokens_ = tokens;
  k_ = k;
  stride_ = stride;
  made_.fill(false);
}

Activations::View Activations::Get(ActivationFormat format, const Ops& ops,
                                   Parallel& parallel) {
  if (format == ActivationFormat::kF32)
    return {reinterpret_cast<const std::byte*>(x_),
            static_cast<uint64_t>(stride_) * sizeof(float)};
  const size_t index = static_cast<size_t>(format);
  const uint64_t row_bytes = ActivationRowBytes(format, k_);
  std::byte* rows = rows_[index];
  if (!made_[index]) {
    parallel.For(tokens_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        ops.quantize[index](x_ + t * stride_, k_,
                            rows + static_cast<uint64_t>(t) * row_bytes);
    });
    made_[index] = true;
  }
  return {rows, row_bytes};
}

void Matmul(const Ops& ops, Parallel& parallel, const TensorView& weight,
            Activations& x, float* out, int64_t out_stride) {
  CHECK(weight.cols == x.k());
  if (x.tokens() == 0 || weight.rows == 0) return;
  const MatmulKernel& kernel = ops.MatmulFor(weight.type);
  const Activations::View view = x.Get(kernel.format, ops, parallel);
  const MatmulArgs args = {.weight = weight,
                           .activations = view.data,
                           .activation_stride = view.stride,
                           .tokens = x.tokens(),
                           .out = out,
                           .out_stride = out_stride};
  parallel.For(
      weight.rows, RowGrain(weight.rows, parallel.threads()),
      [&](int64_t begin, int64_t end) { kernel.rows(args, begin, end); });
}

}  // namespace coldstream
