// Random weights made directly in a quantised type, faster than a disk writes.
//
// Codes are uniform random bits; the block's scale (and minimum, where the type
// has one) is chosen so that the dequantised weights have mean zero and the
// standard deviation asked for. Floats come from a table of 4096 values of a
// bell curve. Nothing depends on the C++ library's distributions or on libm, so
// a seed gives the same bytes on every machine.
//
// Codes no quantiser writes (-128 in q8_0 and in q6_k scales) do not occur,
// because kernels may rely on that.
// Source of the layouts: GGUF block formats (base/dtype.h).
// Thread-safety: Fill may be called from several threads at once.
#ifndef COLDSTREAM_TOOLS_RANDOM_BLOCKS_H_
#define COLDSTREAM_TOOLS_RANDOM_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"

namespace coldstream {

class RandomBlocks {
 public:
  // Weights around zero.
  RandomBlocks(DType type, double stddev);

  // F32 values around `mean`: norms and biases.
  static RandomBlocks Floats(double mean, double stddev);

  // Fills `out`, a whole number of blocks. The bytes depend on `seed` and on
  // nothing else; a longer `out` begins with the bytes of a shorter one.
  void Fill(uint64_t seed, std::span<std::byte> out) const;

 private:
  // What goes into a block's scale fields. One of these is drawn per block, so
  // that blocks differ in magnitude as real ones do.
  struct Scale {
    uint16_t d = 0;    // f16
    uint16_t min = 0;  // f16: m, dmin
  };
  static constexpr size_t kScales = 256;
  static constexpr size_t kFloats = 4096;

  RandomBlocks() = default;
  void MakeScales(double stddev);
  void MakeExponents(double stddev);
  void MakeFloats(double mean, double stddev);

  DType type_ = DType::kF32;
  std::array<Scale, kScales> scales_ = {};
  std::array<uint8_t, kScales> exponents_ = {};  // mxfp4
  std::vector<uint32_t> floats_;  // bits in the low bytes, F32, F16 or BF16
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_RANDOM_BLOCKS_H_
