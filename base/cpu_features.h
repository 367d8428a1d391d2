// Which row of the ops table this CPU can run.
#ifndef COLDSTREAM_BASE_CPU_FEATURES_H_
#define COLDSTREAM_BASE_CPU_FEATURES_H_

#include <optional>
#include <string_view>

namespace coldstream {

// Ordered: a larger value includes what the smaller ones need.
enum class Isa { kScalar = 0, kAvx2 = 1, kAvx512 = 2 };

struct CpuFeatures {
  bool avx2 = false;         // AVX2 + FMA + F16C
  bool avx512 = false;       // F, BW, DQ, VL and everything of avx2
  bool avx512_vnni = false;  // 8-bit dot products
  bool avx512_bf16 = false;
};

// What the CPU and the operating system support. Never guesses: an
// instruction set the kernel does not save on a context switch counts as
// absent.
CpuFeatures DetectCpu();

// The best row these features can run.
Isa BestIsa(const CpuFeatures& features);

const char* IsaName(Isa isa);  // "scalar", "avx2", "avx512"
std::optional<Isa> IsaFromName(std::string_view name);

}  // namespace coldstream

#endif  // COLDSTREAM_BASE_CPU_FEATURES_H_
