// Matrix products on both CPUs: bytes of weights a second (decode reads each
// once), in percent of what reading alone gives right afterwards (%read), and
// multiply-adds a second (prompts). The matrices are cut from a buffer far
// larger than the caches, a different one each iteration.
//
//   matmul_bench [--threads=N] [--benchmark_filter=q4_k/1$]

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/host_memory.h"
#include "base/system_limits.h"
#include "kernels/matmul.h"

namespace coldstream {
namespace {

constexpr int64_t kRows = 2048;
constexpr int64_t kCols = 5632;
constexpr uint64_t kBufferBytes = uint64_t{512} << 20;

// One buffer for every benchmark: random bytes, made valid by type as needed.
HostMemory& Buffer() {
  static HostMemory memory = [] {
    StatusOr<HostMemory> allocated =
        HostMemory::Allocate(kBufferBytes, "weights");
    if (!allocated.ok()) std::abort();
    return *std::move(allocated);
  }();
  return memory;
}

// The block's F16 members (or the plain value, or the exponent) set to 1/64:
// random ones would be subnormal here and there, which is slow on any kernel.
void SetScales(DType type, uint8_t* block) {
  const DTypeInfo& info = InfoOf(type);
  const uint8_t half[2] = {0x00, 0x24};
  if (type == DType::kMXFP4) {
    block[0] = 120;
  } else if (info.block_elements == 1) {
    block[info.block_bytes - 1] = 0x3c;  // near 0.01 or 1
  } else if (type == DType::kQ3_K || type == DType::kQ6_K) {
    std::memcpy(block + info.block_bytes - 2, half, 2);
  } else if (type == DType::kQ2_K) {
    std::memcpy(block + 80, half, 2);
    std::memcpy(block + 82, half, 2);
  } else {
    std::memcpy(block, half, 2);
    if (type == DType::kQ4_1 || type == DType::kQ5_1 || type == DType::kQ4_K ||
        type == DType::kQ5_K) {
      std::memcpy(block + 2, half, 2);
    }
  }
}

// Fills the buffer with the same 256 random blocks.
void FillWith(DType type) {
  const DTypeInfo& info = InfoOf(type);
  std::mt19937 random(1);
  std::vector<uint8_t> period(info.block_bytes * 256);
  for (uint8_t& byte : period) byte = static_cast<uint8_t>(random());
  for (size_t at = 0; at < period.size(); at += info.block_bytes)
    SetScales(type, period.data() + at);
  std::byte* data = Buffer().data();
  for (uint64_t at = 0; at < kBufferBytes; at += period.size()) {
    std::memcpy(data + at, period.data(),
                std::min<uint64_t>(period.size(), kBufferBytes - at));
  }
}

// The ceiling: the buffer, only summed, by each thread in four streams that are
// asked for ahead (one stream reads a third slower here).
void ReadBuffer(Parallel& parallel) {
  const uint64_t* words = reinterpret_cast<const uint64_t*>(Buffer().data());
  constexpr int64_t kStream = 1 << 12;  // words
  constexpr int64_t kPiece = 4 * kStream;
  constexpr int64_t kLine = 8;
  const int64_t pieces = static_cast<int64_t>(kBufferBytes) / 8 / kPiece;
  parallel.For(pieces, 64, [&](int64_t begin, int64_t end) {
    uint64_t sums[4] = {};
    for (int64_t p = begin; p < end; ++p) {
      const uint64_t* piece = words + p * kPiece;
      for (int64_t i = 0; i < kStream; i += kLine) {
        for (int64_t j = 0; j < 4; ++j) {
          const uint64_t* line = piece + j * kStream + i;
          __builtin_prefetch(line + kPiece);
          sums[j] += line[0] + line[4];
        }
      }
    }
    benchmark::DoNotOptimize(sums);
  });
}

void BM_MemoryRead(benchmark::State& state, int threads) {
  FillWith(DType::kQ8_0);
  Parallel parallel(threads);
  for (auto _ : state) ReadBuffer(parallel);
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(kBufferBytes) *
                             static_cast<double>(state.iterations()) / 1e9,
                         benchmark::Counter::kIsRate);
}

void BM_Matmul(benchmark::State& state, const Ops* ops, DType type,
               int threads) {
  const int64_t tokens = state.range(0);
  FillWith(type);
  Parallel parallel(threads);
  std::vector<float> x(static_cast<size_t>(tokens * kCols));
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  std::vector<float> out(static_cast<size_t>(tokens * kRows));
  Activations activations = *Activations::Create(tokens, kCols);
  activations.Set(x.data(), tokens, kCols, kCols);
  TensorView weight = {.type = type, .rows = kRows, .cols = kCols};
  const uint64_t bytes = weight.row_bytes() * kRows;
  uint64_t at = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (auto _ : state) {
    if (at + bytes > kBufferBytes) at = 0;
    weight.data = Buffer().data() + at;
    at += bytes;
    Matmul(*ops, parallel, weight, activations, out.data(), kRows);
    benchmark::ClobberMemory();
  }
  // Read once more, so that the ceiling is of the same minute.
  const auto start = std::chrono::steady_clock::now();
  ReadBuffer(parallel);
  const std::chrono::duration<double> read =
      std::chrono::steady_clock::now() - start;
  const std::chrono::duration<double> run = start - begun;
  const double calls = static_cast<double>(state.iterations());
  const double giga = 1e9;
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(bytes) * calls / giga, benchmark::Counter::kIsRate);
  state.counters["%read"] = 100 * static_cast<double>(bytes) * calls /
                            run.count() /
                            (static_cast<double>(kBufferBytes) / read.count());
  state.counters["GMAC/s"] = benchmark::Counter(
      static_cast<double>(kRows * kCols * tokens) * calls / giga,
      benchmark::Counter::kIsRate);
}

void BM_Quantize(benchmark::State& state, const Ops* ops,
                 ActivationFormat format) {
  std::vector<float> x(static_cast<size_t>(kCols));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 37) / 16 - 1;
  std::vector<std::byte> row(ActivationRowBytes(format, kCols));
  for (auto _ : state) {
    ops->quantize[static_cast<size_t>(format)](x.data(), kCols, row.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kCols);
}

void RegisterAll(int threads) {
  benchmark::RegisterBenchmark("memory_read", BM_MemoryRead, threads)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    const StatusOr<const Ops*> ops = OpsFor(isa);
    if (!ops.ok()) continue;
    const std::string row = (*ops)->name;
    benchmark::RegisterBenchmark(("quantize/" + row + "/32").c_str(),
                                 BM_Quantize, *ops, ActivationFormat::kQ8_32);
    benchmark::RegisterBenchmark(("quantize/" + row + "/256").c_str(),
                                 BM_Quantize, *ops, ActivationFormat::kQ8_256);
    for (const DTypeInfo& info : AllDTypes()) {
      benchmark::RegisterBenchmark(("matmul/" + row + "/" + info.name).c_str(),
                                   BM_Matmul, *ops, info.type, threads)
          ->Arg(1)
          ->Arg(8)
          ->Arg(128)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace coldstream

int main(int argc, char** argv) {
  int threads = coldstream::DefaultThreads();
  std::vector<char*> others;
  for (int i = 0; i < argc; ++i) {
    if (std::string(argv[i]).rfind("--threads=", 0) == 0)
      threads = std::atoi(argv[i] + 10);
    else
      others.push_back(argv[i]);
  }
  int count = static_cast<int>(others.size());
  coldstream::RegisterAll(threads);
  benchmark::Initialize(&count, others.data());
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
