// Every golden model against an independent engine's logits, at once, token by
// token and in chunks of seven, in every ISA row this CPU has.
//
// Bounds: tests/golden/README.md. NMSE <= 1e-7 with F32 arithmetic, and
// <= 1.5 x peer_nmse + 1e-6 with 8-bit or f16 activations.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "base/cpu_features.h"
#include "kernels/ops.h"
#include "tests/support/golden_models.h"

namespace coldstream {
namespace {

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> isas;
  for (Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512})
    if (OpsFor(isa).ok()) isas.push_back(isa);
  return isas;
}

StatusOr<std::vector<float>> Evaluate(const Golden& golden, Isa isa,
                                      int64_t chunk) {
  EngineOptions options;
  options.ram_bytes = uint64_t{1} << 30;
  options.threads = 2;
  options.isa = isa;
  return EvaluateGolden(golden, options, chunk);
}

class GoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, LogitsMatchTheIndependentEngineInEveryChunking) {
  const Golden& golden = GetParam();
  const std::vector<float> exact = ExactLogits(golden);
  const double bound = golden.bound();
  for (Isa isa : AvailableIsas()) {
    const auto at_once =
        Evaluate(golden, isa, static_cast<int64_t>(golden.ids.size()));
    ASSERT_TRUE(at_once.ok()) << at_once.status();
    const double nmse = Nmse(*at_once, exact);
    EXPECT_LE(nmse, bound) << golden.file << ", " << IsaName(isa);
    std::printf("%s %s: nmse %.3g, %.2f of the bound\n", golden.file.c_str(),
                IsaName(isa), nmse, nmse / bound);
    for (int64_t chunk : {1, 7}) {
      const auto chunked = Evaluate(golden, isa, chunk);
      ASSERT_TRUE(chunked.ok()) << chunked.status();
      EXPECT_EQ(std::memcmp(chunked->data(), at_once->data(),
                            at_once->size() * sizeof(float)),
                0)
          << golden.file << ", " << IsaName(isa) << ", chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(LoadGoldens()),
                         [](const auto& golden) {
                           return TestNameOf(golden.param);
                         });

}  // namespace
}  // namespace coldstream
