#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/half.h"
#include "kernels/cpu/scalar/register.h"

namespace coldstream {
namespace {

// The running softmax of one query: after any number of tiles, out = sum / l
// is the softmax over the keys seen so far.
struct Running {
  double max = -std::numeric_limits<double>::infinity();
  double weight = 0;        // l: sum of exp(score - max)
  std::vector<double> sum;  // [value_dim]: sum of exp(score - max) * value
};

// Row j of a tile, and its values.
class KvRow {
 public:
  KvRow(KvType type, const std::byte* tile, int64_t j, int64_t dim)
      : is_f16_(type == KvType::kF16) {
    if (is_f16_) {
      halves_ = reinterpret_cast<const uint16_t*>(tile) + j * dim;
    } else {
      q_ = reinterpret_cast<const int8_t*>(tile) + j * dim;
      halves_ = reinterpret_cast<const uint16_t*>(tile + KvScalesOffset(dim)) +
                j * KvScales(dim);
    }
  }
  float operator[](int64_t i) const {
    if (is_f16_) return F16ToF32(halves_[i]);
    const float scale = F16ToF32(halves_[i / kKvScaleValues]);
    return F16ToF32(F32ToF16(scale * static_cast<float>(q_[i])));
  }

 private:
  bool is_f16_;
  const uint16_t* halves_ = nullptr;  // values, or scales
  const int8_t* q_ = nullptr;
};

double Dot(const float* q, const KvRow& key, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{q[i]} * double{key[i]};
  return sum;
}

// Adds one tile, of which `count` rows are there.
void AddTile(const AttentionArgs& args, const float* q, const std::byte* keys,
             const std::byte* values, int64_t count, Running* running) {
  std::array<double, kKvBlockTokens> scores;
  double max = running->max;
  for (int64_t j = 0; j < count; ++j) {
    scores[static_cast<size_t>(j)] =
        double{args.scale} *
        Dot(q, KvRow(args.kv_type, keys, j, args.key_dim), args.key_dim);
    max = std::max(max, scores[static_cast<size_t>(j)]);
  }
  // Zero for the first tile, where the old maximum is -inf.
  const double correction = std::exp(running->max - max);
  running->max = max;
  running->weight *= correction;
  for (double& sum : running->sum) sum *= correction;
  for (int64_t j = 0; j < count; ++j) {
    const double p = std::exp(scores[static_cast<size_t>(j)] - max);
    running->weight += p;
    const KvRow value(args.kv_type, values, j, args.value_dim);
    for (int64_t i = 0; i < args.value_dim; ++i)
      running->sum[static_cast<size_t>(i)] += p * double{value[i]};
  }
}

void AttendHead(const AttentionArgs& args, int64_t token_index, int64_t head,
                Running* running) {
  const AttentionToken& token = args.tokens[token_index];
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const int64_t key_offset = kv_head * KvTileBytes(args.kv_type, args.key_dim);
  const int64_t value_offset =
      kv_head * KvTileBytes(args.kv_type, args.value_dim);
  const int64_t row = token_index * args.heads + head;
  running->max = -std::numeric_limits<double>::infinity();
  running->weight = 0;
  std::fill(running->sum.begin(), running->sum.end(), 0.0);
  for (int64_t base = 0; base <= token.position; base += kKvBlockTokens) {
    const int64_t block = base / kKvBlockTokens;
    const int64_t count = std::min(kKvBlockTokens, token.position - base + 1);
    AddTile(args, args.q + row * args.key_dim,
            token.key_blocks[block] + key_offset,
            token.value_blocks[block] + value_offset, count, running);
  }
  float* out = args.out + row * args.value_dim;
  for (int64_t i = 0; i < args.value_dim; ++i)
    out[i] = static_cast<float>(running->sum[static_cast<size_t>(i)] /
                                running->weight);
}

void Attention(const AttentionArgs& args, int64_t item_begin,
               int64_t item_end) {
  const int64_t token_tiles = AttentionItems(args) / args.kv_heads;
  const int64_t group = args.heads / args.kv_heads;
  Running running;
  running.sum.resize(static_cast<size_t>(args.value_dim));
  for (int64_t item = item_begin; item < item_end; ++item) {
    const int64_t kv_head = item / token_tiles;
    const int64_t begin = item % token_tiles * kAttentionTokenTile;
    const int64_t end = std::min(begin + kAttentionTokenTile, args.token_count);
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h)
        AttendHead(args, t, h, &running);
  }
}

}  // namespace

void RegisterScalarAttention(Ops* ops) { ops->attention = Attention; }

}  // namespace coldstream
