// Angles of rotary position embedding.
//
// theta_i = position * base^(-2i/d), then one of: linear interpolation (Chen et
// al. 2023, arXiv 2306.15595), YaRN (Peng et al. 2023, arXiv 2309.00071), or
// per-frequency divisors carried by the model (the Llama 3 "rope_freqs"
// tensor).
#ifndef COLDSTREAM_KERNELS_ROPE_TABLE_H_
#define COLDSTREAM_KERNELS_ROPE_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace coldstream {

enum class RopeScaling : uint8_t { kNone, kLinear, kYarn };

struct RopeParams {
  int64_t rot_dim = 0;  // rotated values of a head, even
  double base = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;             // context extension, >= 1
  int64_t original_context = 0;  // YaRN
  double beta_fast = 32;         // YaRN
  double beta_slow = 1;          // YaRN
  double extrapolation = 1;      // YaRN ext_factor; 0 is plain interpolation
  // Factor on cos and sin; 0 means the default of the scaling: 1, or for YaRN
  // 0.1 ln(factor) + 1. An explicit value replaces it.
  double attention_factor = 0;
  // rot_dim / 2 divisors of theta_i, or empty.
  std::vector<float> frequency_divisors = {};
};

// Precomputes what does not depend on the position.
class RopeTable {
 public:
  explicit RopeTable(const RopeParams& params);

  // out: [positions][rot_dim / 2][2] of cos, sin.
  void Fill(std::span<const int64_t> positions, float* out) const;

  int64_t rot_dim() const { return rot_dim_; }

 private:
  int64_t rot_dim_;
  double magnitude_;
  std::vector<double> frequencies_;  // radians per position
};

}  // namespace coldstream

#endif  // COLDSTREAM_KERNELS_ROPE_TABLE_H_
