// Random weight rows of any type, for the tests of the products: random bytes,
// with the block's 16-bit scales (or the plain values) set to finite numbers.
//
// The bytes are allocated exactly, so that AddressSanitizer sees a read past
// the last one; `shift` moves them off their alignment.
#ifndef COLDSTREAM_TESTS_KERNELS_WEIGHT_ROWS_H_
#define COLDSTREAM_TESTS_KERNELS_WEIGHT_ROWS_H_

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "base/half.h"
#include "base/tensor_view.h"
#include "kernels/ops.h"

namespace coldstream {

// Offsets of a block's F16 members: the scale, and the minimum or -1.
struct HalfOffsets {
  int scale;
  int minimum;
};

inline HalfOffsets HalfOffsetsOf(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108, -1};
    case DType::kQ6_K:
      return {208, -1};
    default:
      return {0, -1};
  }
}

class WeightRows {
 public:
  WeightRows(DType type, int64_t rows, int64_t cols, unsigned seed,
             size_t shift = 0)
      : type_(type), rows_(rows), cols_(cols), shift_(shift) {
    const size_t bytes =
        static_cast<size_t>(rows) * RowBytes(type, static_cast<uint64_t>(cols));
    storage_ = std::make_unique<std::byte[]>(bytes + shift);
    std::mt19937 random(seed);
    for (size_t i = 0; i < bytes; ++i) data()[i] = std::byte(random() & 0xff);
    const DTypeInfo& info = InfoOf(type);
    for (size_t at = 0; at < bytes; at += info.block_bytes)
      MakeFinite(data() + at, random);
  }

  std::byte* data() { return storage_.get() + shift_; }
  TensorView view() {
    return {.type = type_, .data = data(), .rows = rows_, .cols = cols_};
  }

  // All values, by the scalar row: [rows, cols].
  std::vector<float> Values() {
    std::vector<float> values(static_cast<size_t>(rows_ * cols_));
    const Ops& scalar = **OpsFor(Isa::kScalar);
    for (int64_t r = 0; r < rows_; ++r)
      scalar.MatmulFor(type_).dequantize(view().row(r), cols_,
                                         values.data() + r * cols_);
    return values;
  }

  // The same rows with minima of zero.
  WeightRows WithoutMinima() {
    WeightRows copy(type_, rows_, cols_, 0);
    const DTypeInfo& info = InfoOf(type_);
    const size_t bytes = static_cast<size_t>(rows_) * view().row_bytes();
    std::memcpy(copy.data(), data(), bytes);
    const int offset = HalfOffsetsOf(type_).minimum;
    for (size_t at = 0; offset >= 0 && at < bytes; at += info.block_bytes)
      std::memset(copy.data() + at + offset, 0, 2);
    return copy;
  }

 private:
  void MakeFinite(std::byte* block, std::mt19937& random) {
    std::normal_distribution<float> normal;
    const float value = normal(random) / 16;
    const uint16_t half =
        type_ == DType::kBF16 ? F32ToBF16(value) : F32ToF16(value);
    const uint16_t minimum = F32ToF16(normal(random) / 16);
    const HalfOffsets offsets = HalfOffsetsOf(type_);
    if (type_ == DType::kF32) {
      std::memcpy(block, &value, sizeof(value));
    } else if (type_ == DType::kMXFP4) {
      block[0] = std::byte(110 + random() % 20);
    } else {
      std::memcpy(block + offsets.scale, &half, sizeof(half));
      if (offsets.minimum >= 0)
        std::memcpy(block + offsets.minimum, &minimum, sizeof(minimum));
    }
  }

  DType type_;
  int64_t rows_;
  int64_t cols_;
  size_t shift_;
  std::unique_ptr<std::byte[]> storage_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_KERNELS_WEIGHT_ROWS_H_
