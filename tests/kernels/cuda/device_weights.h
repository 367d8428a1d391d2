// Random weights as kernels on the GPU may meet them: at a byte offset from a
// multiple of 64, with nothing readable past the aligned word that holds the
// last byte, and garbage before them and after.
#ifndef COLDSTREAM_TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_
#define COLDSTREAM_TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_

#include <cstring>
#include <memory>
#include <new>

#include "base/tensor_view.h"
#include "tests/kernels/weight_rows.h"

namespace coldstream {

class DeviceWeights {
 public:
  DeviceWeights(WeightRows& weights, size_t shift,
                std::byte garbage = std::byte{0xa5})
      : view_(weights.view()) {
    const size_t bytes = static_cast<size_t>(view_.rows) * view_.row_bytes();
    const size_t end = (shift + bytes + 3) / 4 * 4;
    storage_.reset(static_cast<std::byte*>(::operator new(end, kAlignment)));
    std::memset(storage_.get(), static_cast<int>(garbage), end);
    std::byte* data = storage_.get() + shift;
    std::memcpy(data, weights.data(), bytes);
    view_.data = data;
  }

  const TensorView& view() const { return view_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(std::byte* memory) const {
      ::operator delete(memory, kAlignment);
    }
  };

  TensorView view_;
  std::unique_ptr<std::byte, Delete> storage_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_
