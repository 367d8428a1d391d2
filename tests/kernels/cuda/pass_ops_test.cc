// CudaPassOps on the deferred device: what a pass knows reaches the kernels in
// any legal order of work, and the operations are wired as the CPU's are. How
// exact each kernel is, its own test says.

#include "kernels/pass_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/kernels/weight_rows.h"
#include "tests/support/deferred_device.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

constexpr int64_t kHidden = 64;
constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadDim = 16;
constexpr int64_t kFfn = 96;
constexpr int64_t kVocab = 33;
constexpr int64_t kLayerTag = 3;

const PassLimits kLimits = {.tokens = 70,
                            .logit_rows = 4,
                            .input_width = kFfn,
                            .output_rows = kFfn,
                            .rot_dim = kHeadDim,
                            .blocks = 8,
                            .heads = kHeads,
                            .value_dim = kHeadDim,
                            .vocab = 3000};

// The arrays behind a PassTokens: two sequences, the second of which begins at
// position 60 and so reaches into a second block.
class Tokens {
 public:
  Tokens(int64_t first, int64_t second, unsigned seed) {
    for (int64_t i = 0; i < first; ++i) Append(i, 0);
    for (int64_t i = 0; i < second; ++i) Append(60 + i, 1);
    rope_ = RandomFloats(count() * kHeadDim, 1, seed);
    logit_rows_ = {0, static_cast<int32_t>(count()) - 1};
  }

  int64_t count() const { return static_cast<int64_t>(positions_.size()); }
  PassTokens view() const {
    return {.positions = positions_,
            .sequence = sequence_,
            .block_begin = block_begin_,
            .blocks = blocks_,
            .rope = rope_,
            .logit_rows = logit_rows_};
  }

 private:
  void Append(int64_t position, int32_t sequence) {
    positions_.push_back(position);
    sequence_.push_back(sequence);
  }

  std::vector<int64_t> positions_;
  std::vector<int32_t> sequence_;
  std::vector<int32_t> block_begin_ = {0, 1, 4};
  std::vector<int32_t> blocks_ = {5, 0, 7, 2};
  std::vector<float> rope_;
  std::vector<int32_t> logit_rows_;
};

// A model of one layer in a device's memory, and room for a pass.
class Model {
 public:
  Model(Device* device, DType type, KvType kv_type = KvType::kF16)
      : device_(device), type_(type) {
    norm_ = Vector(kHidden, 1);
    bias_ = Vector(kHeads * kHeadDim, 2);
    q_ = Matrix(kHeads * kHeadDim, kHidden, 3);
    k_ = Matrix(kKvHeads * kHeadDim, kHidden, 4);
    v_ = Matrix(kKvHeads * kHeadDim, kHidden, 5);
    o_ = Matrix(kHidden, kHeads * kHeadDim, 6);
    gate_ = Matrix(kFfn, kHidden, 7);
    up_ = Matrix(kFfn, kHidden, 8);
    down_ = Matrix(kHidden, kFfn, 9);
    head_ = Matrix(kVocab, kHidden, 10);
    cache_.type = kv_type;
    cache_.block_bytes =
        static_cast<uint64_t>(2 * kKvHeads * KvTileBytes(kv_type, kHeadDim));
    cache_.values_offset = cache_.block_bytes / 2;
    cache_.base = Bytes(8 * cache_.block_bytes);
    std::memset(cache_.base, 0, 8 * cache_.block_bytes);
    cache_.heads = kHeads;
    cache_.kv_heads = kKvHeads;
    cache_.key_dim = cache_.value_dim = kHeadDim;
    for (float** buffer : {&x_, &normed_, &query_, &key_, &value_, &attended_,
                           &projected_, &hidden_gate_, &hidden_up_, &logits_})
      *buffer = reinterpret_cast<float*>(Bytes(70 * kFfn * sizeof(float)));
  }

  // Queues the pass; `logits` ([2, kVocab]) is there after Finish. host_x must
  // stay until then.
  Status Queue(PassOps& ops, const Tokens& tokens,
               const std::vector<float>& host_x, std::vector<float>* logits) {
    const int64_t count = tokens.count();
    logits->resize(2 * kVocab);
    RETURN_IF_ERROR(ops.BeginPass(tokens.view()));
    RETURN_IF_ERROR(ops.CopyIn(x_, host_x.data(), count * kHidden));
    RETURN_IF_ERROR(
        ops.Norm(NormKind::kRms, x_, norm_, 1e-5f, count, kHidden, normed_));
    RETURN_IF_ERROR(ops.SetInput(normed_, count, kHidden));
    RETURN_IF_ERROR(ops.Matmul(q_, query_, kHeads * kHeadDim));
    RETURN_IF_ERROR(ops.Matmul(k_, key_, kKvHeads * kHeadDim));
    RETURN_IF_ERROR(ops.Matmul(v_, value_, kKvHeads * kHeadDim));
    RETURN_IF_ERROR(ops.AddBias(bias_, count, kHeads * kHeadDim, query_));
    RETURN_IF_ERROR(ops.Rope(query_, kHeads, kHeadDim, RopePairing::kHalves));
    RETURN_IF_ERROR(ops.Rope(key_, kKvHeads, kHeadDim, RopePairing::kHalves));
    RETURN_IF_ERROR(ops.StoreKv(key_, value_, cache_));
    RETURN_IF_ERROR(ops.Attend(query_, cache_, attended_));
    RETURN_IF_ERROR(ops.SetInput(attended_, count, kHeads * kHeadDim));
    RETURN_IF_ERROR(ops.Matmul(o_, projected_, kHidden));
    RETURN_IF_ERROR(ops.Add(projected_, count * kHidden, x_));
    RETURN_IF_ERROR(
        ops.Norm(NormKind::kLayer, x_, norm_, 1e-5f, count, kHidden, normed_));
    RETURN_IF_ERROR(ops.SetInput(normed_, count, kHidden));
    RETURN_IF_ERROR(ops.Matmul(gate_, hidden_gate_, kFfn));
    RETURN_IF_ERROR(ops.Matmul(up_, hidden_up_, kFfn));
    RETURN_IF_ERROR(
        ops.SwiGlu(hidden_gate_, hidden_up_, count * kFfn, hidden_gate_));
    RETURN_IF_ERROR(ops.SetInput(hidden_gate_, count, kFfn));
    RETURN_IF_ERROR(ops.Matmul(down_, projected_, kHidden));
    RETURN_IF_ERROR(ops.Add(projected_, count * kHidden, x_));
    RETURN_IF_ERROR(ops.CheckFinite(x_, count * kHidden, kLayerTag));
    RETURN_IF_ERROR(
        ops.NormLogitRows(NormKind::kRms, x_, norm_, 1e-5f, kHidden, normed_));
    RETURN_IF_ERROR(ops.SetInput(normed_, 2, kHidden));
    RETURN_IF_ERROR(ops.Matmul(head_, logits_, kVocab));
    RETURN_IF_ERROR(ops.Scale(0.5f, 2 * kVocab, logits_));
    RETURN_IF_ERROR(ops.CheckFinite(logits_, 2 * kVocab, kLayerTag + 1));
    return ops.CopyOut(logits->data(), logits_, 2 * kVocab);
  }

 private:
  // Nothing is queued yet: the memory of these devices is the host's.
  std::byte* Bytes(uint64_t bytes) {
    memory_.push_back(*device_->Allocate(bytes, "a model"));
    return memory_.back().data();
  }
  float* Vector(int64_t n, unsigned seed) {
    const std::vector<float> values = RandomFloats(n, 1, seed);
    std::byte* to = Bytes(values.size() * sizeof(float));
    std::memcpy(to, values.data(), values.size() * sizeof(float));
    return reinterpret_cast<float*>(to);
  }
  TensorView Matrix(int64_t rows, int64_t cols, unsigned seed) {
    WeightRows weights(type_, rows, cols, seed);
    TensorView view = weights.view();
    const uint64_t bytes = static_cast<uint64_t>(rows) * view.row_bytes();
    std::byte* to = Bytes(bytes);
    std::memcpy(to, view.data, bytes);
    view.data = to;
    return view;
  }

  Device* device_;
  DType type_;
  std::vector<DeviceMemory> memory_;
  float *norm_, *bias_;
  TensorView q_, k_, v_, o_, gate_, up_, down_, head_;
  KvLayer cache_;
  float *x_, *normed_, *query_, *key_, *value_, *attended_, *projected_,
      *hidden_gate_, *hidden_up_, *logits_;
};

std::vector<float> CpuLogits(DType type, const Tokens& tokens,
                             const std::vector<float>& x,
                             KvType kv_type = KvType::kF16) {
  auto device = CreateCpuDevice();
  Parallel parallel(1);
  auto ops = *CreateCpuPassOps(*OpsFor(Isa::kScalar), &parallel, kLimits);
  Model model(device.get(), type, kv_type);
  std::vector<float> logits;
  EXPECT_THAT(model.Queue(*ops, tokens, x, &logits), IsOk());
  EXPECT_THAT(ops->Finish(), IsOk());
  return logits;
}

// A deferred device with what a pass on it needs.
struct Cuda {
  explicit Cuda(const DeferredDeviceOptions& options, DType type = DType::kF32,
                KvType kv_type = KvType::kF16)
      : device(CreateDeferredDevice(options)),
        stream(*device->NewStream()),
        ops(*CreateCudaPassOps(device.get(), stream.get(), kLimits)),
        model(device.get(), type, kv_type) {}

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<PassOps> ops;
  Model model;
};

double Largest(std::span<const float> x) {
  double largest = 0;
  for (const float v : x) largest = std::max(largest, std::fabs(double{v}));
  return largest;
}

double Nmse(const std::vector<float>& got, const std::vector<float>& exact) {
  double error = 0, power = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(double{got[i]} - double{exact[i]}, 2);
    power += std::pow(double{exact[i]}, 2);
  }
  return error / power;
}

// With F32 weights both round as floats do but for the cache, which is F16:
// what tests/golden/README.md asks of a whole model holds for one layer.
TEST(CudaPassOpsTest, ALayerAgreesWithTheCpus) {
  for (const int64_t count : {1, 4, 35}) {
    const Tokens tokens(count, count, 21);
    const auto x = RandomFloats(tokens.count() * kHidden, 1, 22);
    const std::vector<float> expected = CpuLogits(DType::kF32, tokens, x);
    for (const uint64_t seed : {1, 2, 3}) {
      Cuda cuda({.seed = seed});
      std::vector<float> logits;
      ASSERT_THAT(cuda.model.Queue(*cuda.ops, tokens, x, &logits), IsOk());
      ASSERT_THAT(cuda.ops->Finish(), IsOk());
      EXPECT_LE(Nmse(logits, expected), 1e-7) << count << ", seed " << seed;
      EXPECT_EQ(cuda.ops->first_not_finite(), -1);
    }
  }
}

// A value that rounds otherwise is a step away, 1 / 127 of the largest: the
// bound is as if each was. Against a cache of f16 it is over the bound above.
TEST(CudaPassOpsTest, ALayerWithAQuantisedCacheAgreesWithTheCpus) {
  const Tokens tokens(35, 35, 21);
  const auto x = RandomFloats(tokens.count() * kHidden, 1, 22);
  const auto expected = CpuLogits(DType::kF32, tokens, x, KvType::kQ8_0);
  Cuda cuda({.seed = 1}, DType::kF32, KvType::kQ8_0);
  std::vector<float> logits;
  ASSERT_THAT(cuda.model.Queue(*cuda.ops, tokens, x, &logits), IsOk());
  ASSERT_THAT(cuda.ops->Finish(), IsOk());
  EXPECT_LE(Nmse(logits, expected), 1.0 / (127 * 127));
  EXPECT_GT(Nmse(logits, CpuLogits(DType::kF32, tokens, x)), 1e-7);
}

TEST(CudaPassOpsTest, PassesMayFollowOneAnotherWithoutAWait) {
  const Tokens first(3, 2, 31);
  const Tokens second(1, 7, 32);
  const auto first_x = RandomFloats(first.count() * kHidden, 1, 33);
  const auto second_x = RandomFloats(second.count() * kHidden, 1, 34);
  std::vector<float> expected[2];
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Cuda cuda({.seed = seed}, DType::kQ8_0);
    std::vector<float> logits[2];
    ASSERT_THAT(cuda.model.Queue(*cuda.ops, first, first_x, &logits[0]),
                IsOk());
    if (seed == 0) {
      ASSERT_THAT(cuda.ops->Finish(), IsOk());
    }
    ASSERT_THAT(cuda.model.Queue(*cuda.ops, second, second_x, &logits[1]),
                IsOk());
    ASSERT_THAT(cuda.ops->Finish(), IsOk());
    for (int pass = 0; pass < 2; ++pass) {
      if (seed == 0) expected[pass] = logits[pass];
      EXPECT_EQ(BitsOf(logits[pass]), BitsOf(expected[pass]))
          << "pass " << pass << ", seed " << seed;
    }
  }
}

// The bytes that describe a pass are packed in host memory, from where they are
// copied late: the next pass must not write them before.
TEST(CudaPassOpsTest, ANewPassDoesNotOverwriteTheOneThatIsStillToBeCopied) {
  const Tokens first(2, 2, 36);
  const Tokens second(2, 2, 37);
  const int64_t n = first.count() * kHeadDim;
  const auto x = RandomFloats(n, 1, 38);
  std::vector<float> expected[2] = {x, x};
  const Tokens* tokens[2] = {&first, &second};
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t t = 0; t < first.count(); ++t)
      (*OpsFor(Isa::kScalar))
          ->rope(expected[pass].data() + t * kHeadDim, 1, kHeadDim, kHeadDim,
                 tokens[pass]->view().rope.data() + t * kHeadDim,
                 RopePairing::kHalves);
  }
  // As in rope_test.cc: two products and a sum of either row.
  const double bound =
      3 * kRounding * 2 * Largest(x) *
      std::max(Largest(first.view().rope), Largest(second.view().rope));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Cuda cuda({.seed = seed});
    DeviceMemory memory[2];
    std::vector<float> out[2];
    for (int pass = 0; pass < 2; ++pass) {
      memory[pass] = *cuda.device->Allocate(x.size() * sizeof(float), "x");
      out[pass].resize(x.size());
    }
    for (int pass = 0; pass < 2; ++pass) {
      auto* values = reinterpret_cast<float*>(memory[pass].data());
      ASSERT_THAT(cuda.ops->BeginPass(tokens[pass]->view()), IsOk());
      ASSERT_THAT(cuda.ops->CopyIn(values, x.data(), n), IsOk());
      ASSERT_THAT(cuda.ops->Rope(values, 1, kHeadDim, RopePairing::kHalves),
                  IsOk());
      ASSERT_THAT(cuda.ops->CopyOut(out[pass].data(), values, n), IsOk());
    }
    ASSERT_THAT(cuda.ops->Finish(), IsOk());
    for (int pass = 0; pass < 2; ++pass)
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(out[pass][i], expected[pass][i], bound)
            << "pass " << pass << ", seed " << seed << ", value " << i;
  }
}

TEST(CudaPassOpsTest, TheFirstTensorThatIsNotFiniteIsToldOncePerPass) {
  const Tokens tokens(2, 2, 41);
  const auto good = RandomFloats(tokens.count() * kHidden, 1, 42);
  auto bad = good;
  bad[5] = std::numeric_limits<float>::infinity();
  Cuda cuda({.seed = 4});
  std::vector<float> logits;
  ASSERT_THAT(cuda.model.Queue(*cuda.ops, tokens, bad, &logits), IsOk());
  ASSERT_THAT(cuda.ops->Finish(), IsOk());
  EXPECT_EQ(cuda.ops->first_not_finite(), kLayerTag);
  // The cache holds what the first pass stored: positions are written anew.
  ASSERT_THAT(cuda.model.Queue(*cuda.ops, tokens, good, &logits), IsOk());
  ASSERT_THAT(cuda.ops->Finish(), IsOk());
  EXPECT_EQ(cuda.ops->first_not_finite(), -1);
}

// More rows than are worked on at a time, and padding behind each.
TEST(CudaPassOpsTest, TheBestLogitsAreTheCpus) {
  constexpr int64_t kRows = 18;
  constexpr int64_t kStride = 3010;
  std::vector<float> logits = RandomFloats(kRows * kStride, 3, 81);
  for (float& logit : logits) logit = std::round(logit * 64) / 64;  // ties
  Parallel parallel(1);
  auto cpu = *CreateCpuPassOps(*OpsFor(Isa::kScalar), &parallel, kLimits);
  for (const int64_t k : {1, 2, 40, 256}) {
    for (const int64_t n : {3, 300, 3000}) {
      std::vector<LogitChoice> expected(static_cast<size_t>(kRows * k));
      ASSERT_THAT(cpu->CopyOutBest(expected.data(), logits.data(), kRows,
                                   kStride, n, k),
                  IsOk());
      Cuda cuda({.seed = static_cast<uint64_t>(k + n)});
      const DeviceMemory memory =
          *cuda.device->Allocate(logits.size() * sizeof(float), "logits");
      auto* const on_device = reinterpret_cast<float*>(memory.data());
      std::vector<LogitChoice> best(expected.size(), {77, 77});
      ASSERT_THAT(cuda.ops->CopyIn(on_device, logits.data(),
                                   static_cast<int64_t>(logits.size())),
                  IsOk());
      ASSERT_THAT(
          cuda.ops->CopyOutBest(best.data(), on_device, kRows, kStride, n, k),
          IsOk());
      ASSERT_THAT(cuda.ops->Finish(), IsOk());
      for (size_t i = 0; i < best.size(); ++i) {
        ASSERT_EQ(best[i].id, expected[i].id)
            << i << ", k " << k << ", n " << n;
        ASSERT_EQ(best[i].logit, expected[i].logit) << i;
      }
    }
  }
}

TEST(CudaPassOpsTest, RefusedPinnedMemoryCostsNoCorrectness) {
  const Tokens tokens(3, 3, 51);
  const auto x = RandomFloats(tokens.count() * kHidden, 1, 52);
  std::vector<float> pinned, pageable;
  Cuda with({.seed = 5});
  ASSERT_THAT(with.model.Queue(*with.ops, tokens, x, &pinned), IsOk());
  ASSERT_THAT(with.ops->Finish(), IsOk());
  Cuda without({.seed = 5, .faults = {.pinned_bytes = 0}});
  ASSERT_THAT(without.model.Queue(*without.ops, tokens, x, &pageable), IsOk());
  ASSERT_THAT(without.ops->Finish(), IsOk());
  EXPECT_EQ(BitsOf(pageable), BitsOf(pinned));
}

TEST(CudaPassOpsTest, MemoryIsCountedAndItsRefusalTold) {
  auto device = CreateDeferredDevice({});
  auto stream = *device->NewStream();
  const auto ops = CreateCudaPassOps(device.get(), stream.get(), kLimits);
  ASSERT_THAT(ops.status(), IsOk());
  EXPECT_EQ((*ops)->memory_bytes(), CudaPassOpsBytes(kLimits));
  auto full =
      CreateDeferredDevice({.memory_bytes = CudaPassOpsBytes(kLimits) - 1});
  auto full_stream = *full->NewStream();
  EXPECT_EQ(
      CreateCudaPassOps(full.get(), full_stream.get(), kLimits).status().code(),
      absl::StatusCode::kResourceExhausted);
}

TEST(CudaPassOpsTest, AFailedKernelIsToldByTheEndOfItsPass) {
  const Tokens tokens(2, 1, 61);
  const auto x = RandomFloats(tokens.count() * kHidden, 1, 62);
  for (const int64_t kernel : {0, 3, 9}) {
    Cuda cuda({.seed = 6, .faults = {.fail_kernels_from = kernel}});
    std::vector<float> logits;
    Status status = cuda.model.Queue(*cuda.ops, tokens, x, &logits);
    if (status.ok()) status = cuda.ops->Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << kernel;
  }
}

TEST(CudaPassOpsTest, APassThatIsGivenUpLeavesNothingBehind) {
  const Tokens tokens(5, 5, 71);
  const auto x = RandomFloats(tokens.count() * kHidden, 1, 72);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Cuda cuda({.seed = seed});
    std::vector<float> logits;
    ASSERT_THAT(cuda.model.Queue(*cuda.ops, tokens, x, &logits), IsOk());
    cuda.ops.reset();  // the device CHECKs that no queued copy loses its memory
  }
}

}  // namespace
}  // namespace coldstream
