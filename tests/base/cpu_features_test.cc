#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace coldstream {
namespace {

// The flags of the first CPU in /proc/cpuinfo, with a space at both ends.
std::string KernelFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("flags")) return line.substr(line.find(':') + 1) + " ";
  }
  return "";
}

TEST(CpuFeatures, AgreeWithTheKernel) {
  const std::string flags = KernelFlags();
  if (flags.empty()) GTEST_SKIP() << "no x86 flags in /proc/cpuinfo";
  const auto has = [&](const std::string& flag) {
    return flags.find(" " + flag + " ") != std::string::npos;
  };
  const CpuFeatures cpu = DetectCpu();
  EXPECT_EQ(cpu.avx2, has("avx2") && has("fma") && has("f16c"));
  EXPECT_EQ(cpu.avx512, cpu.avx2 && has("avx512f") && has("avx512bw") &&
                            has("avx512dq") && has("avx512vl"));
  EXPECT_EQ(cpu.avx512_vnni, cpu.avx512 && has("avx512_vnni"));
  EXPECT_EQ(cpu.avx512_bf16, cpu.avx512 && has("avx512_bf16"));
}

TEST(BestIsa, IsTheWidestThatTheFeaturesAllow) {
  EXPECT_EQ(BestIsa({}), Isa::kScalar);
  EXPECT_EQ(BestIsa({.avx2 = true}), Isa::kAvx2);
  EXPECT_EQ(BestIsa({.avx2 = true, .avx512 = true}), Isa::kAvx512);
}

TEST(IsaName, GoesThereAndBack) {
  for (Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512})
    EXPECT_EQ(IsaFromName(IsaName(isa)), isa);
  EXPECT_EQ(IsaFromName("AVX2"), std::nullopt);
  EXPECT_EQ(IsaFromName(""), std::nullopt);
  EXPECT_EQ(IsaFromName("sse"), std::nullopt);
}

TEST(Isa, IsOrderedByWhatItNeeds) {
  EXPECT_LT(Isa::kScalar, Isa::kAvx2);
  EXPECT_LT(Isa::kAvx2, Isa::kAvx512);
}

}  // namespace
}  // namespace coldstream
