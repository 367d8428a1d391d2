// The attention kernels against the scalar row, and against one another: the
// kernel that takes a token, its batch mates and the order of threads change no
// bit.

#include "kernels/cuda/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/half.h"
#include "gtest/gtest.h"
#include "kernels/ops.h"
#include "tests/kernels/cuda/random_floats.h"
#include "tests/kernels/kv_tiles.h"
#include "tests/simt/immediate_stream.h"
#include "tests/simt/lane_order.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

struct Shape {
  int64_t heads, kv_heads, key_dim, value_dim;
};

// A pass of runs of tokens, one sequence each, whose blocks lie in no order and
// hold NaN where nothing was written.
class Pass {
 public:
  struct TokenRun {
    int64_t first_position;
    int64_t tokens;
  };
  Pass(const Shape& shape, const std::vector<TokenRun>& runs,
       double magnitude = 1, unsigned seed = 1);

  const Shape& shape() const { return shape_; }
  int64_t count() const { return static_cast<int64_t>(positions_.size()); }
  PassTokens host_tokens() const {
    PassTokens tokens;
    tokens.positions = positions_;
    tokens.sequence = sequence_;
    return tokens;
  }
  PassLimits limits() const {
    PassLimits limits;
    limits.tokens = count();
    limits.blocks = static_cast<int64_t>(blocks_.size());
    return limits;
  }

  // The cache becomes any of q8_0, or the f16 that it stands for.
  void FillAs(KvType type);

  cuda::AttentionCall Call(float* partials, float* out) const;
  // What the scalar row takes; the blocks' addresses live in this pass.
  AttentionArgs ScalarArgs(float* out) const;

  std::vector<float> q;  // [tokens, heads, key_dim]

 private:
  KvLayer Layer() const;
  void LayOut(KvType type);
  void FillBlock(int32_t block, int64_t tokens, double magnitude,
                 std::mt19937* random);

  Shape shape_;
  std::vector<int64_t> positions_;
  std::vector<int32_t> sequence_;
  std::vector<int32_t> block_begin_ = {0};
  std::vector<int32_t> blocks_;
  std::vector<int64_t> tokens_in_;  // by block, as blocks_
  uint64_t values_offset_ = 0;
  uint64_t block_bytes_ = 0;
  KvType type_ = KvType::kF16;
  std::vector<std::byte> cache_;
  // For the scalar row.
  std::vector<const std::byte*> key_blocks_, value_blocks_;
  std::vector<AttentionToken> scalar_tokens_;
};

Pass::Pass(const Shape& shape, const std::vector<TokenRun>& runs,
           double magnitude, unsigned seed)
    : shape_(shape) {
  std::mt19937 random(seed);
  for (size_t s = 0; s < runs.size(); ++s) {
    for (int64_t i = 0; i < runs[s].tokens; ++i) {
      positions_.push_back(runs[s].first_position + i);
      sequence_.push_back(static_cast<int32_t>(s));
    }
    const int64_t length = positions_.back() + 1;
    for (int64_t begin = 0; begin < length; begin += 64)
      tokens_in_.push_back(std::min<int64_t>(64, length - begin));
    block_begin_.push_back(static_cast<int32_t>(tokens_in_.size()));
  }
  blocks_.resize(static_cast<size_t>(block_begin_.back()));
  std::iota(blocks_.begin(), blocks_.end(), 0);
  std::shuffle(blocks_.begin(), blocks_.end(), random);
  LayOut(KvType::kF16);
  for (size_t b = 0; b < blocks_.size(); ++b)
    FillBlock(blocks_[b], tokens_in_[b], magnitude, &random);
  q = RandomFloats(count() * shape.heads * shape.key_dim, magnitude, seed + 1);
}

void Pass::LayOut(KvType type) {
  type_ = type;
  values_offset_ = static_cast<uint64_t>(shape_.kv_heads *
                                         KvTileBytes(type, shape_.key_dim));
  block_bytes_ = values_offset_ +
                 static_cast<uint64_t>(shape_.kv_heads *
                                       KvTileBytes(type, shape_.value_dim));
  cache_.resize(blocks_.size() * block_bytes_);
  for (size_t i = 0; i < cache_.size(); i += sizeof kNanHalf)
    std::memcpy(cache_.data() + i, &kNanHalf, sizeof kNanHalf);
  key_blocks_.clear(), value_blocks_.clear(), scalar_tokens_.clear();
  for (const int32_t block : blocks_) {
    key_blocks_.push_back(cache_.data() +
                          static_cast<uint64_t>(block) * block_bytes_);
    value_blocks_.push_back(key_blocks_.back() + values_offset_);
  }
  for (size_t t = 0; t < positions_.size(); ++t) {
    const auto begin = block_begin_[static_cast<size_t>(sequence_[t])];
    scalar_tokens_.push_back({positions_[t], key_blocks_.data() + begin,
                              value_blocks_.data() + begin});
  }
}

void Pass::FillAs(KvType type) {
  LayOut(type);
  std::mt19937 random(7);
  const auto append = [&](int64_t dim, int64_t tokens, std::byte* to) {
    for (int64_t h = 0; h < shape_.kv_heads; ++h) {
      const std::vector<std::byte> tile = RandomQ8Tile(dim, tokens, &random);
      const std::vector<uint16_t> halves = HalvesOfQ8Tile(tile.data(), dim);
      const auto bytes = static_cast<size_t>(KvTileBytes(type, dim));
      std::memcpy(to,
                  type == KvType::kF16 ? static_cast<const void*>(halves.data())
                                       : tile.data(),
                  bytes);
      to += bytes;
    }
  };
  for (size_t b = 0; b < blocks_.size(); ++b) {
    std::byte* const to =
        cache_.data() + static_cast<uint64_t>(blocks_[b]) * block_bytes_;
    append(shape_.key_dim, tokens_in_[b], to);
    append(shape_.value_dim, tokens_in_[b], to + values_offset_);
  }
}

void Pass::FillBlock(int32_t block, int64_t tokens, double magnitude,
                     std::mt19937* random) {
  std::normal_distribution<double> normal;
  auto* const keys = reinterpret_cast<uint16_t*>(
      cache_.data() + static_cast<uint64_t>(block) * block_bytes_);
  const auto fill = [&](uint16_t* rows, int64_t dim, double size) {
    for (int64_t h = 0; h < shape_.kv_heads; ++h)
      for (int64_t i = 0; i < tokens * dim; ++i)
        rows[h * 64 * dim + i] =
            F32ToF16(static_cast<float>(normal(*random) * size));
  };
  fill(keys, shape_.key_dim, magnitude);
  fill(keys + values_offset_ / 2, shape_.value_dim, 1);
}

KvLayer Pass::Layer() const {
  // Attention only reads.
  return {const_cast<std::byte*>(cache_.data()),
          block_bytes_,
          values_offset_,
          shape_.heads,
          shape_.kv_heads,
          shape_.key_dim,
          shape_.value_dim,
          type_};
}

cuda::AttentionCall Pass::Call(float* partials, float* out) const {
  cuda::AttentionCall call;
  call.q = q.data();
  call.out = out;
  call.partials = partials;
  call.layer = Layer();
  call.tokens = {count(), positions_.data(), sequence_.data(),
                 block_begin_.data(), blocks_.data()};
  return call;
}

AttentionArgs Pass::ScalarArgs(float* out) const {
  return {.q = q.data(),
          .out = out,
          .tokens = scalar_tokens_.data(),
          .token_count = count(),
          .heads = shape_.heads,
          .kv_heads = shape_.kv_heads,
          .key_dim = shape_.key_dim,
          .value_dim = shape_.value_dim,
          .scale = static_cast<float>(
              1 / std::sqrt(static_cast<double>(shape_.key_dim))),
          .kv_type = type_};
}

// The lists of work, as AttentionWork makes them or all of one kind.
enum class Kernel { kPlanned, kDecode, kPrefill };

std::vector<float> Attend(const Pass& pass, Kernel kernel) {
  const PassTokens tokens = pass.host_tokens();
  cuda::AttentionWork planned(pass.limits());
  planned.Plan(tokens);
  std::vector<cuda::DecodeItem> decode(planned.decode().begin(),
                                       planned.decode().end());
  std::vector<cuda::CombineItem> combine(planned.combine().begin(),
                                         planned.combine().end());
  std::vector<cuda::PrefillTile> tiles(planned.tiles().begin(),
                                       planned.tiles().end());
  int32_t partials =
      static_cast<int32_t>(cuda::AttentionWork::MostPartials(pass.limits()));
  if (kernel != Kernel::kPlanned) {
    decode.clear(), combine.clear(), tiles.clear(), partials = 0;
    for (int32_t t = 0; t < static_cast<int32_t>(pass.count()); ++t) {
      const auto at = static_cast<size_t>(t);
      if (kernel == Kernel::kPrefill) {
        if (!tiles.empty() && tiles.back().count < cuda::kTileTokens &&
            tokens.sequence[at] == tokens.sequence[at - 1])
          ++tiles.back().count;
        else
          tiles.push_back({t, 1});
        continue;
      }
      const auto splits =
          static_cast<int32_t>(tokens.positions[at] / cuda::kSplitKeys + 1);
      if (splits > 1) combine.push_back({t, partials, splits});
      for (int32_t s = 0; s < splits; ++s)
        decode.push_back({t, s, splits > 1 ? partials++ : -1});
    }
  }
  const Shape& shape = pass.shape();
  std::vector<float> scratch(static_cast<size_t>(
      partials * shape.heads * cuda::PartialFloats(shape.value_dim)));
  std::vector<float> out(
      static_cast<size_t>(pass.count() * shape.heads * shape.value_dim),
      std::numeric_limits<float>::quiet_NaN());
  cuda::AttentionCall call = pass.Call(scratch.data(), out.data());
  call.work = {decode.data(),  static_cast<int64_t>(decode.size()),
               combine.data(), static_cast<int64_t>(combine.size()),
               tiles.data(),   static_cast<int64_t>(tiles.size())};
  simt::ImmediateStream stream;
  EXPECT_THAT(cuda::Attend(call, &stream), IsOk());
  return out;
}

// What float arithmetic may differ from the scalar row by: [value_dim].
std::vector<double> BoundsOf(const AttentionArgs& args, int64_t t,
                             int64_t head) {
  const AttentionToken& token = args.tokens[t];
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const float* q = args.q + (t * args.heads + head) * args.key_dim;
  const int64_t keys = token.position + 1;
  std::vector<double> scores;
  double error = 0;  // of any score: a chain over the key, the scale
  for (int64_t j = 0; j < keys; ++j) {
    const uint16_t* key =
        reinterpret_cast<const uint16_t*>(token.key_blocks[j / 64]) +
        (kv_head * 64 + j % 64) * args.key_dim;
    double score = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < args.key_dim; ++i) {
      const double product = double{q[i]} * double{F16ToF32(key[i])};
      score += product;
      magnitude += std::fabs(product);
    }
    scores.push_back(score * args.scale);
    error = std::max(error, magnitude * args.scale * kRounding *
                                (static_cast<double>(args.key_dim) + 2));
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  const double min = *std::min_element(scores.begin(), scores.end());
  double weight = 0;
  std::vector<double> absolute(static_cast<size_t>(args.value_dim));
  for (int64_t j = 0; j < keys; ++j) {
    const double p = std::exp(scores[static_cast<size_t>(j)] - max);
    weight += p;
    const uint16_t* value =
        reinterpret_cast<const uint16_t*>(token.value_blocks[j / 64]) +
        (kv_head * 64 + j % 64) * args.value_dim;
    for (size_t i = 0; i < absolute.size(); ++i)
      absolute[i] += p * std::fabs(double{F16ToF32(value[i])});
  }
  // A weight's relative error: its score's and the maximum's, the rounded
  // difference from the maximum (exp is below 2^-149 past 104), exp itself (two
  // units in the last place), and for each tile and split a correction of the
  // same kinds; then a chain over the keys. Numerator and denominator both.
  const double steps = static_cast<double>(keys) / 64 + 1 +
                       static_cast<double>(keys) / cuda::kSplitKeys + 1;
  const double range = std::min(max - min, 104.0);
  const double p_error =
      std::expm1(2 * error) +
      kRounding * (2 * range + 5 * steps + static_cast<double>(keys) + 8);
  std::vector<double> bounds;
  for (const double sum : absolute)
    bounds.push_back(2 * p_error * sum / weight + 1e-37);
  return bounds;
}

void ExpectAsTheScalarRow(const Pass& pass, const std::vector<float>& out) {
  const Shape& shape = pass.shape();
  std::vector<float> expected(out.size());
  const AttentionArgs args = pass.ScalarArgs(expected.data());
  (*OpsFor(Isa::kScalar))->attention(args, 0, AttentionItems(args));
  for (int64_t t = 0; t < pass.count(); ++t) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const std::vector<double> bounds = BoundsOf(args, t, h);
      for (size_t i = 0; i < bounds.size(); ++i) {
        const size_t at =
            static_cast<size_t>((t * shape.heads + h) * shape.value_dim) + i;
        ASSERT_NEAR(out[at], expected[at], bounds[i])
            << "token " << t << " at " << args.tokens[t].position << ", head "
            << h << ", index " << i << ", key_dim " << shape.key_dim;
      }
    }
  }
}

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {
      {8, 1, 64, 64},   {4, 4, 80, 80},   {6, 2, 96, 96},  {3, 1, 100, 100},
      {4, 2, 128, 128}, {2, 1, 256, 256}, {5, 1, 24, 40},  {2, 2, 1, 1},
      {2, 1, 192, 128}, {7, 1, 70, 130},  {12, 1, 32, 32}, {16, 2, 40, 72},
      {1, 1, 136, 200}, {24, 2, 48, 48}};
  return shapes;
}

TEST(CudaAttentionTest, DecodingIsWithinRoundingOfTheScalarRowForAllShapes) {
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    for (const Shape& shape : Shapes()) {
      const Pass pass(shape, {{70, 1}, {270, 1}});
      ExpectAsTheScalarRow(pass, Attend(pass, Kernel::kDecode));
    }
  }
}

TEST(CudaAttentionTest, PromptsAreWithinRoundingOfTheScalarRowForAllShapes) {
  for (size_t i = 0; i < Shapes().size(); ++i) {
    simt::SetLaneOrder(simt::kLaneOrders[i % std::size(simt::kLaneOrders)]);
    const Pass pass(Shapes()[i], {{0, 11}, {250, 18}});
    ExpectAsTheScalarRow(pass, Attend(pass, Kernel::kPrefill));
  }
}

TEST(CudaAttentionTest, PositionsAroundTilesAndSplitsSeeTheirKeysOnly) {
  simt::SetLaneOrder({simt::LaneOrder::kShuffled, 3});
  // Unwritten positions hold NaN: one key too many poisons the result.
  for (const int64_t position :
       {0, 1, 31, 32, 62, 63, 64, 65, 127, 128, 255, 256, 511, 512, 520}) {
    const Pass pass({4, 2, 64, 64}, {{position, 1}});
    ExpectAsTheScalarRow(pass, Attend(pass, Kernel::kDecode));
    ExpectAsTheScalarRow(pass, Attend(pass, Kernel::kPrefill));
  }
}

TEST(CudaAttentionTest, TheKernelThatTakesATokenChangesNoBit) {
  simt::SetLaneOrder({});
  for (const Shape& shape : Shapes()) {
    const Pass pass(shape, {{0, 5}, {508, 8}, {255, 2}});
    const auto bits = BitsOf(Attend(pass, Kernel::kDecode));
    EXPECT_EQ(BitsOf(Attend(pass, Kernel::kPrefill)), bits)
        << "key_dim " << shape.key_dim << ", heads " << shape.heads;
  }
  // Short runs to one kernel, a long one to the other.
  const Pass pass({4, 2, 64, 64}, {{300, 3}, {250, 40}, {600, 1}});
  EXPECT_EQ(BitsOf(Attend(pass, Kernel::kPlanned)),
            BitsOf(Attend(pass, Kernel::kDecode)));
}

TEST(CudaAttentionTest, TilesOfQ8GiveTheBitsOfTheHalvesTheyStandFor) {
  for (size_t i = 0; i < Shapes().size(); ++i) {
    simt::SetLaneOrder(simt::kLaneOrders[i % std::size(simt::kLaneOrders)]);
    for (const Kernel kernel : {Kernel::kDecode, Kernel::kPrefill}) {
      Pass pass(Shapes()[i], {{0, 5}, {300, 8}});
      pass.FillAs(KvType::kF16);
      const std::vector<float> halves = Attend(pass, kernel);
      ExpectAsTheScalarRow(pass, halves);
      pass.FillAs(KvType::kQ8_0);
      EXPECT_EQ(BitsOf(Attend(pass, kernel)), BitsOf(halves))
          << "key_dim " << Shapes()[i].key_dim;
    }
  }
}

TEST(CudaAttentionTest, TheOrderOfThreadsChangesNoBit) {
  const Pass pass({6, 2, 64, 96}, {{240, 30}, {600, 1}});
  simt::SetLaneOrder({});
  const auto bits = BitsOf(Attend(pass, Kernel::kPlanned));
  for (const simt::LaneOrder order : simt::kLaneOrders) {
    simt::SetLaneOrder(order);
    EXPECT_EQ(BitsOf(Attend(pass, Kernel::kPlanned)), bits) << NameOf(order);
  }
}

TEST(CudaAttentionTest, APromptOfSeveralTilesMatchesTheScalarRow) {
  simt::SetLaneOrder({});
  const Pass pass({4, 1, 32, 32}, {{0, 150}});
  ExpectAsTheScalarRow(pass, Attend(pass, Kernel::kPlanned));
}

TEST(CudaAttentionTest, ALongContextMatchesTheScalarRow) {
  simt::SetLaneOrder({});
  const Pass pass({4, 1, 64, 64}, {{3999, 1}}, 1.5);
  ExpectAsTheScalarRow(pass, Attend(pass, Kernel::kPlanned));
}

TEST(CudaAttentionTest, ScoresOfAHundredThousandDoNotOverflow) {
  simt::SetLaneOrder({});
  const Pass pass({4, 1, 64, 64}, {{120, 20}, {300, 1}}, 300);
  const auto out = Attend(pass, Kernel::kPlanned);
  for (const float v : out) ASSERT_TRUE(std::isfinite(v));
  ExpectAsTheScalarRow(pass, out);
}

TEST(CudaAttentionTest, NanInAQueryStaysInItsRow) {
  simt::SetLaneOrder({});
  Pass pass({4, 1, 64, 64}, {{72, 8}, {300, 1}});
  for (const Kernel kernel : {Kernel::kDecode, Kernel::kPrefill}) {
    const auto clean = Attend(pass, kernel);
    float* const value = &pass.q[5 * 64 + 3];  // row 5
    const float before = *value;
    *value = std::numeric_limits<float>::quiet_NaN();
    const auto out = Attend(pass, kernel);
    *value = before;
    for (size_t i = 0; i < out.size(); ++i) {
      if (i / 64 == 5)
        ASSERT_TRUE(std::isnan(out[i])) << i;
      else
        ASSERT_EQ(out[i], clean[i]) << i;
    }
  }
}

TEST(CudaAttentionTest, HeadsWiderThanATileAllowsAreRefused) {
  const Pass pass({1, 1, 64, 264}, {{0, 1}});
  simt::ImmediateStream stream;
  EXPECT_THAT(cuda::Attend(pass.Call(nullptr, nullptr), &stream),
              StatusIs(absl::StatusCode::kUnimplemented,
                       ::testing::HasSubstr("at most 256")));
}

TEST(CudaAttentionTest, BlocksPastFourGibibytesAreRead) {
  constexpr uint64_t kFar = uint64_t{3} << 30;
  const SparseMemory memory(2 * kFar + 4096);
  auto* const block = reinterpret_cast<uint16_t*>(memory.data() + 2 * kFar);
  // One key; its value is the result.
  for (int64_t i = 0; i < 8; ++i)
    block[64 * 8 + i] = F32ToF16(static_cast<float>(i));
  const std::vector<float> q(8, 1.0f);
  std::vector<float> out(8);
  const int64_t position = 0;
  const int32_t sequence = 0, blocks = 2;
  const std::vector<int32_t> block_begin = {0, 1};
  const cuda::DecodeItem decode = {0, 0, -1};
  const cuda::PrefillTile tile = {0, 1};
  cuda::AttentionCall call;
  call.q = q.data();
  call.out = out.data();
  call.layer = {memory.data(), kFar, 64 * 8 * 2, 1, 1, 8, 8};
  call.tokens = {1, &position, &sequence, block_begin.data(), &blocks};
  simt::ImmediateStream stream;
  for (const bool decodes : {true, false}) {
    call.work = {};
    call.work.decode = &decode;
    call.work.tiles = &tile;
    (decodes ? call.work.decode_count : call.work.tile_count) = 1;
    std::fill(out.begin(), out.end(), -1.0f);
    ASSERT_THAT(cuda::Attend(call, &stream), IsOk());
    EXPECT_EQ(out, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

}  // namespace
}  // namespace coldstream
