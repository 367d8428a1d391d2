#include "runtime/compute_rates.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/host_memory.h"
#include "base/parallel.h"
#include "kernels/ops.h"
#include "runtime/product_bench.h"
#include "runtime/profile_keys.h"

namespace coldstream {
namespace {

// One token is bound by memory, many by arithmetic; 16 is where they meet.
constexpr int64_t kMaxTokens = ComputeRates::kMostTokens;
constexpr int64_t kPositions = ComputeRates::kPositions;
constexpr std::array<int64_t, 3> kTokenCounts = {1, 16, kMaxTokens};

std::string WeightName(DType type, int64_t tokens) {
  return absl::StrFormat("%s/%d", InfoOf(type).name, tokens);
}

std::string AttentionName(const LayerShape& shape, int64_t tokens) {
  return absl::StrFormat("attention/%dx%dx%dx%d/%d", shape.heads,
                         shape.kv_heads, shape.key_dim, shape.value_dim,
                         tokens);
}

// Attention of the last `tokens` of kPositions positions of one layer.
StatusOr<double> SecondsPerPosition(const LayerShape& shape, int64_t tokens,
                                    const Ops& ops, Parallel& parallel) {
  constexpr int64_t kBlocks = kPositions / kKvBlockTokens;
  const int64_t key_block =
      shape.kv_heads * KvTileBytes(KvType::kF16, shape.key_dim);
  const int64_t value_block =
      shape.kv_heads * KvTileBytes(KvType::kF16, shape.value_dim);
  const int64_t q = tokens * shape.heads * shape.key_dim;
  const int64_t out = tokens * shape.heads * shape.value_dim;
  ASSIGN_OR_RETURN(const HostMemory cache,
                   HostMemory::Allocate(
                       static_cast<size_t>(kBlocks * (key_block + value_block)),
                       "compute rates"));
  ASSIGN_OR_RETURN(
      const HostMemory floats,
      HostMemory::Allocate(static_cast<size_t>(q + out) * sizeof(float),
                           "compute rates"));
  std::fill(cache.bytes().begin(), cache.bytes().end(), std::byte{0});
  std::vector<const std::byte*> keys, values;
  for (int64_t block = 0; block < kBlocks; ++block) {
    keys.push_back(cache.data() + block * key_block);
    values.push_back(cache.data() + kBlocks * key_block + block * value_block);
  }
  std::vector<AttentionToken> looks;
  int64_t positions = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t position = kPositions - tokens + t;
    looks.push_back({position, keys.data(), values.data()});
    positions += position + 1;
  }
  AttentionArgs args;
  args.q = reinterpret_cast<const float*>(floats.data());
  args.out = reinterpret_cast<float*>(floats.data()) + q;
  args.tokens = looks.data();
  args.token_count = tokens;
  args.heads = shape.heads;
  args.kv_heads = shape.kv_heads;
  args.key_dim = shape.key_dim;
  args.value_dim = shape.value_dim;
  const double seconds = MedianSeconds([&] {
    parallel.For(AttentionItems(args), 1, [&](int64_t begin, int64_t end) {
      ops.attention(args, begin, end);
    });
  });
  return seconds / static_cast<double>(positions);
}

// Every type of a matrix.
std::set<DType> TypesOf(const WeightMap& weights) {
  std::set<DType> types;
  for (const auto& unit : weights.matrices)
    for (const MatrixRows& rows : unit) types.insert(rows.weight.type);
  return types;
}

// The value at `tokens` of a line through the measured points. `at(i)`: the
// seconds measured at kTokenCounts[i].
template <typename At>
double Interpolate(int64_t tokens, const At& at) {
  const auto count = static_cast<double>(tokens);
  if (tokens >= kMaxTokens)
    return at(kTokenCounts.size() - 1) * count / double{kMaxTokens};
  size_t i = 0;
  while (tokens > kTokenCounts[i + 1]) ++i;
  const auto low = static_cast<double>(kTokenCounts[i]);
  const auto high = static_cast<double>(kTokenCounts[i + 1]);
  return at(i) + (at(i + 1) - at(i)) * (count - low) / (high - low);
}

}  // namespace

StatusOr<ComputeRates> ComputeRates::Measure(const Model& model, int threads,
                                             const Seconds& known) {
  ASSIGN_OR_RETURN(const Ops* ops, SelectOps());
  Parallel parallel(threads);
  std::optional<ProductBench> products;
  return MeasureWith(
      {.weight_byte = [&](DType type, int64_t tokens) -> StatusOr<double> {
         if (!products) {
           ASSIGN_OR_RETURN(products,
                            ProductBench::Create(ops, &parallel, kMostTokens));
         }
         return products->SecondsPerByte(type, tokens);
       },
       .attention_position =
           [&](const LayerShape& shape, int64_t tokens) {
             return SecondsPerPosition(shape, tokens, *ops, parallel);
           }},
      model, known);
}

StatusOr<ComputeRates> ComputeRates::MeasureWith(const Bench& bench,
                                                 const Model& model,
                                                 const Seconds& known) {
  ComputeRates rates;
  rates.seconds_ = known;
  for (const DType type : TypesOf(model.weights())) {
    for (const int64_t tokens : kTokenCounts) {
      const std::string name = WeightName(type, tokens);
      if (rates.seconds_.contains(name)) continue;
      ASSIGN_OR_RETURN(rates.seconds_[name], bench.weight_byte(type, tokens));
    }
  }
  for (const LayerShape& shape : model.config().layers) {
    for (const int64_t tokens : {int64_t{1}, kMostTokens}) {
      const std::string name = AttentionName(shape, tokens);
      if (rates.seconds_.contains(name)) continue;
      ASSIGN_OR_RETURN(rates.seconds_[name],
                       bench.attention_position(shape, tokens));
    }
  }
  return rates;
}

std::string ComputeRates::MachineKey(int threads) {
  const StatusOr<const Ops*> ops = SelectOps();
  return ComputeKey(ops.ok() ? (*ops)->name : "?", threads);
}

double ComputeRates::WeightByte(DType type, int64_t tokens) const {
  return Interpolate(tokens, [&](size_t i) {
    return seconds_.at(WeightName(type, kTokenCounts[i]));
  });
}

double ComputeRates::AttentionPosition(const LayerShape& shape,
                                       int64_t tokens) const {
  return seconds_.at(AttentionName(shape, tokens < 8 ? 1 : kMaxTokens));
}

std::vector<UnitCost> UnitCosts(const Model& model, const ComputeRates& rates,
                                const PassLoad& load) {
  const WeightMap& weights = model.weights();
  std::vector<UnitCost> costs(weights.units.size());
  // Token t of the pass looks at positions 0..position + t.
  const double looks = static_cast<double>(load.tokens) *
                       (static_cast<double>(load.position) +
                        (static_cast<double>(load.tokens) + 1) / 2);
  for (size_t unit = 0; unit < costs.size(); ++unit) {
    costs[unit].read_bytes = weights.units[unit].read_bytes;
    for (const MatrixRows& rows : weights.matrices[unit]) {
      const bool head = rows.kind == MatrixKind::kHead;
      const int64_t tokens = head ? load.logit_rows : load.tokens;
      if (tokens == 0) continue;
      const uint64_t bytes =
          RowBytes(rows.weight.type, static_cast<uint64_t>(rows.weight.cols)) *
          static_cast<uint64_t>(rows.weight.rows);
      costs[unit].compute_seconds += static_cast<double>(bytes) *
                                     rates.WeightByte(rows.weight.type, tokens);
      if (rows.kind == MatrixKind::kV && rows.last) {
        costs[unit].compute_seconds +=
            looks * rates.AttentionPosition(
                        model.config().layers[static_cast<size_t>(rows.layer)],
                        load.tokens);
      }
    }
  }
  return costs;
}

}  // namespace coldstream
