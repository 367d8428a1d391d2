// Cuts one piece of device memory into arrays, or counts what they take.
//
//   MemoryCutter cutter(memory.data());      // or nullptr, to count
//   float* partials = cutter.Take<float>(n); // null while counting
//   cutter.taken();                          // bytes so far
//
// Arrays begin at multiples of 256 bytes from the beginning, as cudaMalloc's
// do.
#ifndef COLDSTREAM_KERNELS_CUDA_MEMORY_CUTTER_H_
#define COLDSTREAM_KERNELS_CUDA_MEMORY_CUTTER_H_

#include <cstddef>
#include <cstdint>

namespace coldstream::cuda {

class MemoryCutter {
 public:
  explicit MemoryCutter(std::byte* begin) : begin_(begin) {}

  template <typename T>
  T* Take(int64_t count) {
    std::byte* part = begin_ == nullptr ? nullptr : begin_ + taken_;
    const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(T);
    taken_ += (bytes + 255) / 256 * 256;
    return reinterpret_cast<T*>(part);
  }
  uint64_t taken() const { return taken_; }

 private:
  std::byte* begin_;
  uint64_t taken_ = 0;
};

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_MEMORY_CUTTER_H_
