#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace coldstream {
namespace {

#if defined(__x86_64__)
// clang 14 knows no name for it. It works on the AVX registers, so it needs
// nothing of the operating system that AVX2 does not need.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

CpuFeatures DetectCpu() {
  CpuFeatures features;
#if defined(__x86_64__)
  // The builtins check XGETBV too, so a set bit means the state is saved.
  __builtin_cpu_init();
  features.avx2 = __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") && HasF16c();
  features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
  features.avx512_vnni =
      features.avx512 && __builtin_cpu_supports("avx512vnni");
  features.avx512_bf16 =
      features.avx512 && __builtin_cpu_supports("avx512bf16");
#endif
  return features;
}

Isa BestIsa(const CpuFeatures& features) {
  if (features.avx512) return Isa::kAvx512;
  if (features.avx2) return Isa::kAvx2;
  return Isa::kScalar;
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::optional<Isa> IsaFromName(std::string_view name) {
  for (Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512})
    if (name == IsaName(isa)) return isa;
  return std::nullopt;
}

}  // namespace coldstream
