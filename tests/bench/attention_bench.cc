// Attention, one thread: bytes of KV a second (decode reads each once) and
// multiply-adds (prefill). Arguments: heads, KV heads, head width, tokens, and
// the position of the last token.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/kv_rows.h"
#include "kernels/ops.h"

namespace coldstream {
namespace {

struct Cache {
  std::vector<std::byte> storage;
  std::vector<const std::byte*> keys;
  std::vector<const std::byte*> values;
};

Cache MakeCache(const Ops& ops, KvType type, int64_t positions,
                int64_t kv_heads, int64_t dim) {
  Cache cache;
  const int64_t blocks = (positions + kKvBlockTokens - 1) / kKvBlockTokens;
  const int64_t tiles = kv_heads * KvTileBytes(type, dim);
  cache.storage.resize(static_cast<size_t>(2 * blocks * tiles));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> row(static_cast<size_t>(kv_heads * dim));
  for (float& v : row) v = normal(random);
  for (int64_t block = 0; block < 2 * blocks; ++block) {
    std::byte* const to = cache.storage.data() + block * tiles;
    (block % 2 == 0 ? cache.keys : cache.values).push_back(to);
    for (int64_t slot = 0; slot < kKvBlockTokens; ++slot) {
      std::rotate(row.begin(), row.begin() + 7 % std::ssize(row), row.end());
      StoreKvRow(ops, type, row.data(), kv_heads, dim, slot, to);
    }
  }
  return cache;
}

void BM_Attention(benchmark::State& state, const Ops* ops, KvType type) {
  const int64_t heads = state.range(0);
  const int64_t kv_heads = state.range(1);
  const int64_t dim = state.range(2);
  const int64_t count = state.range(3);
  const int64_t last = state.range(4);
  const Cache cache = MakeCache(*ops, type, last + 1, kv_heads, dim);
  std::vector<float> q(static_cast<size_t>(count * heads * dim));
  for (size_t i = 0; i < q.size(); ++i)
    q[i] = static_cast<float>(i % 37) / 16 - 1;
  std::vector<float> out(q.size());
  std::vector<AttentionToken> tokens;
  int64_t keys = 0;
  for (int64_t t = 0; t < count; ++t) {
    tokens.push_back(
        {last + 1 - count + t, cache.keys.data(), cache.values.data()});
    keys += tokens.back().position + 1;
  }
  const AttentionArgs args = {.q = q.data(),
                              .out = out.data(),
                              .tokens = tokens.data(),
                              .token_count = count,
                              .heads = heads,
                              .kv_heads = kv_heads,
                              .key_dim = dim,
                              .value_dim = dim,
                              .scale = 1 / std::sqrt(static_cast<float>(dim)),
                              .kv_type = type};
  for (auto _ : state) {
    ops->attention(args, 0, AttentionItems(args));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * (last + 1) * kv_heads * 2 *
                          KvTileBytes(type, dim) / kKvBlockTokens);
  state.counters["FLOP"] =
      benchmark::Counter(static_cast<double>(keys * heads * dim) * 4 *
                             static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

// heads, KV heads, width, tokens, last position.
void Shapes(benchmark::internal::Benchmark* b) {
  b->Args({32, 4, 64, 1, 4095})      // decode, TinyLlama
      ->Args({32, 8, 128, 1, 4095})  // decode, Llama 3 8B
      ->Args({32, 32, 80, 1, 4095})  // decode, one head a group
      ->Args({32, 4, 64, 8, 4095})
      ->Args({32, 4, 64, 128, 127})  // prefill
      ->Args({32, 4, 64, 512, 511})
      ->Args({32, 8, 128, 128, 127})
      ->Args({32, 32, 80, 128, 127})
      ->Unit(benchmark::kMicrosecond);
}

void RegisterAll() {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    const StatusOr<const Ops*> ops = OpsFor(isa);
    if (!ops.ok()) continue;
    for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
      const std::string name =
          absl::StrCat("attention/", IsaName(isa), "/", NameOf(type));
      benchmark::RegisterBenchmark(name.c_str(), BM_Attention, *ops, type)
          ->Apply(Shapes);
    }
  }
}

}  // namespace
}  // namespace coldstream

int main(int argc, char** argv) {
  coldstream::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
