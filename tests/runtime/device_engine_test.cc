// Engines on a device with memory of its own, without one: golden models
// through the upload stage, on a device that does everything late and in any
// legal order (tests/support/deferred_device.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/byte_units.h"
#include "runtime/engine_plan.h"
#include "tests/support/deferred_engine.h"
#include "tests/support/same_bits.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

StatusOr<std::vector<float>> Evaluate(const Golden& golden,
                                      const EngineOptions& options) {
  return EvaluateSmallUnits(golden, options, 7);
}

class DeviceEngineTest : public ::testing::TestWithParam<Golden> {};

// The same bits as the CPU's scalar row, whose operations these are.
TEST_P(DeviceEngineTest, WeightsThatAreUploadedGiveTheBitsOfResidentOnes) {
  const Golden& golden = GetParam();
  const auto expected = Evaluate(golden, OnScalarCpu());
  ASSERT_THAT(expected.status(), IsOk());
  const auto resident = Evaluate(golden, OnDeferredDevice(1));
  ASSERT_THAT(resident.status(), IsOk());
  EXPECT_TRUE(SameBits(*resident, *expected));

  const uint64_t vram = LeastBudgetOf(golden, OnDeferredDevice(1), "--vram",
                                      &EngineOptions::vram_bytes);
  const uint64_t ram = LeastBudgetOf(golden, OnDeferredDevice(1), "--ram",
                                     &EngineOptions::ram_bytes);
  uint64_t seed = 1;
  for (const int slots : {1, 2, 3, 8}) {
    for (const uint64_t host : {ram, ram + 1 * kMiB, kPlenty}) {
      EngineOptions options = OnDeferredDevice(++seed);
      options.vram_bytes = vram + kMiB;
      options.ram_bytes = host;
      options.prefetch_depth = slots;
      const auto streamed = Evaluate(golden, options);
      ASSERT_THAT(streamed.status(), IsOk());
      EXPECT_TRUE(SameBits(*streamed, *expected))
          << slots << " slots, " << host / kMiB << " MiB of RAM, seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceEngineTest,
                         ::testing::ValuesIn(LoadGoldens()),
                         [](const auto& golden) {
                           return TestNameOf(golden.param);
                         });

TEST(DeviceEngineTest, BytesComeFromWhereThePlanHasThem) {
  const Golden golden = GoldenNamed("llama.f32.gguf");
  EngineOptions options = OnDeferredDevice(3);
  options.vram_bytes =
      LeastBudgetOf(golden, options, "--vram", &EngineOptions::vram_bytes) +
      kMiB;
  options.ram_bytes =
      LeastBudgetOf(golden, options, "--ram", &EngineOptions::ram_bytes) + kMiB;
  auto model = Model::Open({.path = golden.path(), .unit_bytes = kSmallUnits});
  ASSERT_THAT(model.status(), IsOk());
  options.context = 32;
  options.batch_tokens = 8;
  auto engine = Engine::Create(*model, options);
  ASSERT_THAT(engine.status(), IsOk());
  const MemoryPlan& ram = (*engine)->plan();
  const MemoryPlan* vram = (*engine)->vram_plan();
  ASSERT_NE(vram, nullptr);
  uint64_t uploaded_a_pass = 0, on_disk = 0, in_host = 0;
  for (size_t i = 0; i < vram->resident.size(); ++i) {
    const WeightUnit& unit = (*model)->weights().units[i];
    EXPECT_FALSE(vram->resident[i] && ram.resident[i]) << unit.name;
    if (!vram->resident[i]) uploaded_a_pass += unit.buffer_bytes;
    if (!vram->resident[i] && ram.resident[i]) in_host += unit.buffer_bytes;
    if (!vram->resident[i] && !ram.resident[i]) on_disk += unit.read_bytes;
  }
  EXPECT_EQ(ram.pass_read_bytes, on_disk);
  EXPECT_GT(on_disk, 0u);
  EXPECT_GT(in_host, 0u);
  EXPECT_LE(vram->total(), options.vram_bytes);
  EXPECT_LE(ram.total(), options.ram_bytes);

  auto session = (*engine)->NewSession();
  const auto run = [&] {
    return session->Evaluate(
        std::span(golden.ids).first(1), 1, Session::Logits::kLast,
        [](int64_t, std::span<const float>) { return absl::OkStatus(); });
  };
  ASSERT_THAT(run(), IsOk());
  const EngineStats first = (*engine)->stats();
  ASSERT_THAT(run(), IsOk());
  const EngineStats second = Since(first, (*engine)->stats());
  EXPECT_EQ(second.bytes_uploaded, uploaded_a_pass);
  // Beside the units, a row of the embedding table.
  EXPECT_GE(second.bytes_from_disk, on_disk);
  EXPECT_LE(second.bytes_from_disk, on_disk + 2 * 4096);
}

TEST(DeviceEngineTest, TooLittleDeviceMemoryNamesTheLeastThatWorks) {
  const Golden golden = GoldenNamed("llama.q4_k_m.gguf");
  EngineOptions options = OnDeferredDevice(1);
  options.vram_bytes = 1;
  const Status status = Evaluate(golden, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.ToString(), HasSubstr("raise --vram"));
  options.vram_bytes =
      LeastBudgetOf(golden, options, "--vram", &EngineOptions::vram_bytes);
  EXPECT_THAT(Evaluate(golden, options).status(), IsOk());
}

// What Create and PlanEngine say of a model with such heads, on a device and,
// for the plan, without one.
std::vector<Status> WithHeadsOf(int64_t head_dim) {
  const TempDir dir;
  const std::string path = dir.Path("model.gguf");
  EXPECT_THAT(WriteTinyModel(path, {.head_dim = head_dim}), IsOk());
  const auto model = Model::Open({.path = path});
  EXPECT_THAT(model.status(), IsOk());
  EngineOptions options = OnDeferredDevice(1);
  std::vector<Status> said = {Engine::Create(*model, options).status(),
                              PlanEngine(**model, options).status()};
  options.gpu = nullptr;
  said.push_back(PlanEngine(**model, options).status());
  return said;
}

TEST(DeviceEngineTest, HeadsWiderThanItsKernelsTakeAreRefused) {
  EXPECT_THAT(WithHeadsOf(256), Each(IsOk()));
  EXPECT_THAT(WithHeadsOf(264),
              Each(StatusIs(absl::StatusCode::kUnimplemented,
                            AllOf(HasSubstr("264"), HasSubstr("at most 256"),
                                  HasSubstr("--device cpu")))));
}

TEST(DeviceEngineTest, PinnedMemoryThatIsRefusedCostsAWarningAndNoBits) {
  const Golden golden = GoldenNamed("llama.q4_k_m.gguf");
  const auto expected = Evaluate(golden, OnDeferredDevice(1));
  ASSERT_THAT(expected.status(), IsOk());
  for (const uint64_t pinned : {uint64_t{0}, uint64_t{65536}, 4 * kMiB}) {
    EngineOptions options =
        OnDeferredDevice(5, {.faults = {.pinned_bytes = pinned}});
    options.vram_bytes =
        LeastBudgetOf(golden, options, "--vram", &EngineOptions::vram_bytes);
    auto model =
        Model::Open({.path = golden.path(), .unit_bytes = kSmallUnits});
    EngineOptions sized = options;
    sized.context = static_cast<int64_t>(golden.ids.size());
    auto engine = Engine::Create(*model, sized);
    ASSERT_THAT(engine.status(), IsOk());
    EXPECT_LE((*engine)->pinned_bytes(), pinned);
    EXPECT_EQ((*engine)->warnings().empty(), pinned > kMiB);
    EXPECT_STRNE((*engine)->device_name(), "cpu");  // compute stays there
    const auto streamed = Evaluate(golden, options);
    ASSERT_THAT(streamed.status(), IsOk());
    EXPECT_TRUE(SameBits(*streamed, *expected));
  }
}

// Memory that others take while the engine starts, and a device that fails
// while it runs: a clear Status, nothing lost, and the next engine works.
TEST(DeviceEngineTest, EveryAllocationThatIsRefusedIsAnError) {
  const Golden golden = GoldenNamed("llama.q4_k_m.gguf");
  constexpr int64_t kLeastCalls = 3;  // weights, cache, activations
  for (int64_t call = 0;; ++call) {
    const Status status =
        Evaluate(golden,
                 OnDeferredDevice(1, {.faults = {.refuse_allocation = call}}))
            .status();
    if (status.ok()) {
      EXPECT_GE(call, kLeastCalls);
      break;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << call;
  }
}

TEST(DeviceEngineTest, ADeviceThatFailsInMidRunIsTheRunsError) {
  const Golden golden = GoldenNamed("llama.q4_k_m.gguf");
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    for (const int64_t operation : {0, 3, 50, 300}) {
      const EngineOptions kernels =
          OnDeferredDevice(seed, {.faults = {.fail_kernels_from = operation}});
      EXPECT_EQ(Evaluate(golden, kernels).status().code(),
                absl::StatusCode::kInternal)
          << "kernel " << operation << ", seed " << seed;
    }
    for (const int64_t copy : {0, 1, 7, 20}) {
      const EngineOptions copies =
          OnDeferredDevice(seed, {.faults = {.fail_copies_from = copy}});
      EXPECT_EQ(Evaluate(golden, copies).status().code(),
                absl::StatusCode::kInternal)
          << "copy " << copy << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace coldstream
