#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

void Rope(float* x, int64_t heads, int64_t head_dim, int64_t rot_dim,
          const float* cos_sin, RopePairing pairing) {
  const int64_t pairs = rot_dim / 2;
  const bool adjacent = pairing == RopePairing::kAdjacent;
  for (int64_t h = 0; h < heads; ++h) {
    float* head = x + h * head_dim;
    for (int64_t i = 0; i < pairs; ++i) {
      float* first = adjacent ? head + 2 * i : head + i;
      float* second = adjacent ? head + 2 * i + 1 : head + i + pairs;
      const double cos = cos_sin[2 * i];
      const double sin = cos_sin[2 * i + 1];
      const double a = *first;
      const double b = *second;
      *first = static_cast<float>(a * cos - b * sin);
      *second = static_cast<float>(a * sin + b * cos);
    }
  }
}

}  // namespace

void RegisterScalarRope(Ops* ops) { ops->rope = Rope; }

}  // namespace coldstream
