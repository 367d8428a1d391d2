// Golden models on a real card: logits within the golden bound, and with
// weights that are uploaded the same bits as with resident ones. Skipped, with
// the reason, where there is none, unless COLDSTREAM_NEEDS_DEVICE is set.
// tests/runtime/cuda_golden_test.cc runs the same kernels without one.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "base/byte_units.h"
#include "runtime/compute_device.h"
#include "tests/support/golden_models.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

constexpr uint64_t kUnitBytes = 60000;

class GoldenOnGpuTest : public ::testing::TestWithParam<Golden> {
 protected:
  // A CUDA context takes a second: one for all tests of the process.
  static void SetUpTestSuite() {
    device_ = OpenComputeDevice(DeviceChoice::kCuda);
  }
  static void TearDownTestSuite() { device_.reset(); }

  void SetUp() override {
    if (device_->ok()) return;
    if (std::getenv("COLDSTREAM_NEEDS_DEVICE") != nullptr)
      FAIL() << device_->status();
    GTEST_SKIP() << MessageOf(device_->status());
  }

  static EngineOptions OnDevice() {
    EngineOptions options;
    options.gpu = (*device_)->gpu;
    options.ram_bytes = 1024 * kMiB;
    options.vram_bytes = 1024 * kMiB;
    options.staging_bytes = 2 * 65536;
    options.threads = 2;
    return options;
  }

 private:
  static inline std::optional<StatusOr<OpenedDevice>> device_;
};

// The weights that the device has no room for lie in host memory and, with
// little of that too, on disk.
void ExpectSameBitsWhenStreamed(const Golden& golden, EngineOptions options,
                                int64_t chunk,
                                const std::vector<float>& resident) {
  for (const int slots : {1, 2, 3}) {
    for (const uint64_t ram : {300 * kMiB, 1024 * kMiB}) {
      options.prefetch_depth = slots;
      options.ram_bytes = ram;
      options.vram_bytes = LeastVram(golden, options, kUnitBytes);
      const auto streamed = EvaluateGolden(golden, options, chunk, kUnitBytes);
      ASSERT_THAT(streamed.status(), IsOk());
      ASSERT_EQ(streamed->size(), resident.size());
      EXPECT_EQ(std::memcmp(streamed->data(), resident.data(),
                            resident.size() * sizeof(float)),
                0)
          << "chunks of " << chunk << ", " << slots << " slots, " << ram / kMiB
          << " MiB of RAM";
    }
  }
}

TEST_P(GoldenOnGpuTest, LogitsMatchAndDoNotDependOnWhereWeightsAre) {
  const Golden& golden = GetParam();
  const std::vector<float> exact = ExactLogits(golden);
  const auto all = static_cast<int64_t>(golden.ids.size());
  for (const int64_t chunk : {int64_t{1}, int64_t{7}, all}) {
    const auto resident = EvaluateGolden(golden, OnDevice(), chunk, kUnitBytes);
    ASSERT_THAT(resident.status(), IsOk());
    const double nmse = Nmse(*resident, exact);
    EXPECT_LE(nmse, golden.bound()) << "chunks of " << chunk;
    std::printf("%s, chunks of %d: nmse %.3g, %.2f of the bound\n",
                golden.file.c_str(), static_cast<int>(chunk), nmse,
                nmse / golden.bound());
    ExpectSameBitsWhenStreamed(golden, OnDevice(), chunk, *resident);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenOnGpuTest,
                         ::testing::ValuesIn(LoadGoldens()),
                         [](const auto& golden) {
                           return TestNameOf(golden.param);
                         });

}  // namespace
}  // namespace coldstream
