// A look at a weight matrix that someone else owns.
#ifndef COLDSTREAM_BASE_TENSOR_VIEW_H_
#define COLDSTREAM_BASE_TENSOR_VIEW_H_

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace coldstream {

// Shape [rows, cols], rows contiguous, no padding between them. `data` may lie
// at any byte address: kernels use unaligned loads (safetensors promise no
// alignment). Lifetime: the slot or resident memory behind it.
struct TensorView {
  DType type = DType::kF32;
  const std::byte* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;

  uint64_t row_bytes() const {
    return RowBytes(type, static_cast<uint64_t>(cols));
  }
  const std::byte* row(int64_t index) const {
    return data + static_cast<uint64_t>(index) * row_bytes();
  }
  bool empty() const { return data == nullptr; }
};

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_TENSOR_VIEW_H_
