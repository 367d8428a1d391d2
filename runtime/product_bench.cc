#include "runtime/product_bench.h"

#include <cstddef>

namespace coldstream {
namespace {

constexpr int64_t kCols = 4096;
constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
constexpr uint64_t kWeightsBytes = uint64_t{96} << 20;

int64_t RowsOf(DType type) {
  return static_cast<int64_t>(kPieceBytes / RowBytes(type, kCols)) / 64 * 64;
}

}  // namespace

StatusOr<ProductBench> ProductBench::Create(const Ops* ops, Parallel* parallel,
                                            int64_t max_tokens) {
  ProductBench bench;
  bench.ops_ = ops;
  bench.parallel_ = parallel;
  bench.max_tokens_ = max_tokens;
  ASSIGN_OR_RETURN(bench.weights_,
                   HostMemory::Allocate(kWeightsBytes, "product bench"));
  // Pages that were never written share one page of zeros.
  std::fill(bench.weights_.bytes().begin(), bench.weights_.bytes().end(),
            std::byte{0});
  // The densest type there is packs 2.6 bits a weight.
  const int64_t floats = max_tokens * (kCols + RowsOf(DType::kQ2_K));
  ASSIGN_OR_RETURN(
      bench.floats_,
      HostMemory::Allocate(static_cast<size_t>(floats) * sizeof(float),
                           "product bench"));
  ASSIGN_OR_RETURN(bench.x_, Activations::Create(max_tokens, kCols));
  return bench;
}

uint64_t ProductBench::Multiply(DType type, int64_t tokens) {
  const int64_t rows = RowsOf(type);
  const uint64_t piece = RowBytes(type, kCols) * static_cast<uint64_t>(rows);
  // Arithmetic sets the pace of many tokens: a piece is enough.
  const uint64_t pieces = tokens == 1 ? kWeightsBytes / piece : 1;
  auto* const in = reinterpret_cast<float*>(floats_.data());
  float* const out = in + max_tokens_ * kCols;
  for (uint64_t i = 0; i < pieces; ++i) {
    x_.Set(in, tokens, kCols, kCols);
    Matmul(*ops_, *parallel_, {type, weights_.data() + i * piece, rows, kCols},
           x_, out, rows);
  }
  return pieces * piece;
}

double ProductBench::SecondsPerByte(DType type, int64_t tokens) {
  uint64_t bytes = 0;
  const double seconds = MedianSeconds([&] { bytes = Multiply(type, tokens); });
  return seconds / static_cast<double>(bytes);
}

double ProductBench::MeanSecondsPerByte(DType type, int64_t tokens,
                                        double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  uint64_t bytes = 0;
  double elapsed = 0;
  do {
    bytes += Multiply(type, tokens);
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (elapsed < seconds);
  return elapsed / static_cast<double>(bytes);
}

}  // namespace coldstream
