#include "kernels/ops.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"
#if defined(__x86_64__)
#include "kernels/cpu/avx2/register.h"
#include "kernels/cpu/avx512/register.h"
#endif
#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

void RegisterScalar(Ops* ops) {
  RegisterScalarAttention(ops);
  RegisterScalarElementwise(ops);
  RegisterScalarLayerNorm(ops);
  RegisterScalarMatmul(ops);
  RegisterScalarQuantize(ops);
  RegisterScalarRmsNorm(ops);
  RegisterScalarRope(ops);
  RegisterScalarSwiglu(ops);
}

void RegisterAvx2(Ops* ops) {
#if defined(__x86_64__)
  RegisterAvx2Attention(ops);
  RegisterAvx2Elementwise(ops);
  RegisterAvx2LayerNorm(ops);
  RegisterAvx2MatmulF32(ops);
  RegisterAvx2MatmulQ8_256(ops);
  RegisterAvx2MatmulQ8_32(ops);
  RegisterAvx2Quantize(ops);
  RegisterAvx2RmsNorm(ops);
  RegisterAvx2Rope(ops);
  RegisterAvx2Swiglu(ops);
#endif
  (void)ops;
}

void RegisterAvx512(Ops* ops) {
#if defined(__x86_64__)
  RegisterAvx512Attention(ops);
  RegisterAvx512Elementwise(ops);
  RegisterAvx512FloatMatmul(ops);
  RegisterAvx512LayerNorm(ops);
  RegisterAvx512Matmul(ops);
  RegisterAvx512Quantize(ops);
  RegisterAvx512RmsNorm(ops);
  RegisterAvx512Rope(ops);
  RegisterAvx512Swiglu(ops);
  if (DetectCpu().avx512_vnni) {
    RegisterAvx512VnniMatmul(ops);
    ops->name = "avx512-vnni";
  }
#endif
  (void)ops;
}

// The scalar row, overridden by every ISA up to `isa`.
Ops MakeRow(Isa isa) {
  Ops ops;
  ops.isa = isa;
  ops.name = IsaName(isa);
  RegisterScalar(&ops);
  if (isa >= Isa::kAvx2) RegisterAvx2(&ops);
  if (isa >= Isa::kAvx512) RegisterAvx512(&ops);
  return ops;
}

}  // namespace

StatusOr<const Ops*> OpsFor(Isa isa) {
  const CpuFeatures features = DetectCpu();
  if (isa > BestIsa(features)) {
    return absl::UnavailableError(absl::StrFormat(
        "kernels for %s need %s, which this CPU lacks", IsaName(isa),
        isa == Isa::kAvx512 && features.avx2 ? "AVX-512 F, BW, DQ and VL"
                                             : "AVX2, FMA and F16C"));
  }
  switch (isa) {
    case Isa::kScalar: {
      static const Ops row = MakeRow(Isa::kScalar);
      return &row;
    }
    case Isa::kAvx2: {
      static const Ops row = MakeRow(Isa::kAvx2);
      return &row;
    }
    case Isa::kAvx512:
      break;
  }
  static const Ops row = MakeRow(Isa::kAvx512);
  return &row;
}

StatusOr<const Ops*> SelectOps() {
  const char* name = std::getenv("COLDSTREAM_ISA");
  if (name == nullptr || *name == '\0') return OpsFor(BestIsa(DetectCpu()));
  const std::optional<Isa> isa = IsaFromName(name);
  if (!isa) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "COLDSTREAM_ISA=%s: expected scalar, avx2 or avx512", name));
  }
  return OpsFor(*isa);
}

}  // namespace coldstream
