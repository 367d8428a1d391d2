// Input of kernel tests, in buffers of exact size, so that AddressSanitizer
// sees a read or write past them; and address space that is mostly untouched.
#ifndef COLDSTREAM_TESTS_KERNELS_CUDA_RANDOM_FLOATS_H_
#define COLDSTREAM_TESTS_KERNELS_CUDA_RANDOM_FLOATS_H_

#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/check.h"

namespace coldstream {

// Relative error of one rounding to float.
inline constexpr double kRounding = 0x1p-24;

inline std::vector<float> RandomFloats(int64_t n, double magnitude,
                                       unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, magnitude);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = static_cast<float>(normal(random));
  return x;
}

// To compare bit for bit: == takes 0 and -0 for the same.
inline std::vector<uint32_t> BitsOf(const std::vector<float>& x) {
  std::vector<uint32_t> bits;
  for (const float v : x) bits.push_back(std::bit_cast<uint32_t>(v));
  return bits;
}

// Zeros that take memory where they are touched only: offsets past 4 GiB.
class SparseMemory {
 public:
  explicit SparseMemory(size_t bytes) : bytes_(bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    data_ = static_cast<std::byte*>(memory);
  }
  ~SparseMemory() { munmap(data_, bytes_); }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  const size_t bytes_;
  std::byte* data_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_KERNELS_CUDA_RANDOM_FLOATS_H_
