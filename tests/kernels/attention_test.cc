// Attention against a softmax written out in double, and against itself: any
// chunking, any item range, any tile mates give the same bits.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "base/half.h"
#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"
#include "tests/kernels/kv_tiles.h"

namespace coldstream {
namespace {

struct Shape {
  int64_t heads;
  int64_t kv_heads;
  int64_t key_dim;
  int64_t value_dim;
};

const std::byte* AsBytes(const std::vector<uint16_t>& halves) {
  return reinterpret_cast<const std::byte*>(halves.data());
}

// A KV head's row of a block of f16.
const uint16_t* RowOf(const std::byte* const* blocks, int64_t kv_head,
                      int64_t position, int64_t dim) {
  return reinterpret_cast<const uint16_t*>(blocks[position / 64]) +
         (kv_head * 64 + position % 64) * dim;
}

// One sequence's cache: blocks of exact size, NaN in positions not written.
class Sequence {
 public:
  Sequence(const Shape& shape, int64_t length, double key_magnitude,
           unsigned seed)
      : shape_(shape) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const int64_t blocks = (length + kKvBlockTokens - 1) / kKvBlockTokens;
    for (int64_t b = 0; b < blocks; ++b) {
      keys_.push_back(NanBlock(shape.key_dim));
      values_.push_back(NanBlock(shape.value_dim));
      for (int64_t h = 0; h < shape.kv_heads; ++h) {
        const int64_t count = std::min(kKvBlockTokens, length - b * 64);
        const int64_t row = h * kKvBlockTokens;
        for (int64_t i = 0; i < count * shape.key_dim; ++i)
          keys_.back()[static_cast<size_t>(row * shape.key_dim + i)] =
              F32ToF16(static_cast<float>(normal(random) * key_magnitude));
        for (int64_t i = 0; i < count * shape.value_dim; ++i)
          values_.back()[static_cast<size_t>(row * shape.value_dim + i)] =
              F32ToF16(static_cast<float>(normal(random)));
      }
      key_pointers_.push_back(AsBytes(keys_.back()));
      value_pointers_.push_back(AsBytes(values_.back()));
    }
  }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  AttentionToken At(int64_t position) const {
    return {position, key_pointers_.data(), value_pointers_.data()};
  }

 private:
  std::vector<uint16_t> NanBlock(int64_t dim) const {
    return std::vector<uint16_t>(
        static_cast<size_t>(shape_.kv_heads * kKvBlockTokens * dim), kNanHalf);
  }

  Shape shape_;
  std::vector<std::vector<uint16_t>> keys_;
  std::vector<std::vector<uint16_t>> values_;
  std::vector<const std::byte*> key_pointers_;
  std::vector<const std::byte*> value_pointers_;
};

// One sequence's cache as q8_0, and as the f16 that it stands for.
class Q8Sequence {
 public:
  Q8Sequence(const Shape& shape, int64_t length, unsigned seed) {
    std::mt19937 random(seed);
    for (int64_t b = 0; b * kKvBlockTokens < length; ++b) {
      const int64_t count = std::min(kKvBlockTokens, length - b * 64);
      keys_.Append(shape.kv_heads, shape.key_dim, count, &random);
      values_.Append(shape.kv_heads, shape.value_dim, count, &random);
    }
  }
  Q8Sequence(const Q8Sequence&) = delete;
  Q8Sequence& operator=(const Q8Sequence&) = delete;

  std::vector<AttentionToken> Tokens(KvType type, int64_t begin,
                                     int64_t count) const {
    std::vector<AttentionToken> tokens;
    for (int64_t i = 0; i < count; ++i)
      tokens.push_back(
          {begin + i, keys_.Pointers(type), values_.Pointers(type)});
    return tokens;
  }

 private:
  struct Blocks {
    void Append(int64_t kv_heads, int64_t dim, int64_t count,
                std::mt19937* random) {
      std::vector<std::byte>& block = q8.emplace_back();
      std::vector<uint16_t>& halves = f16.emplace_back();
      for (int64_t h = 0; h < kv_heads; ++h) {
        const std::vector<std::byte> tile = RandomQ8Tile(dim, count, random);
        const std::vector<uint16_t> values = HalvesOfQ8Tile(tile.data(), dim);
        block.insert(block.end(), tile.begin(), tile.end());
        halves.insert(halves.end(), values.begin(), values.end());
      }
      q8_pointers.push_back(block.data());
      f16_pointers.push_back(AsBytes(halves));
    }
    const std::byte* const* Pointers(KvType type) const {
      return (type == KvType::kF16 ? f16_pointers : q8_pointers).data();
    }

    std::vector<std::vector<std::byte>> q8;
    std::vector<std::vector<uint16_t>> f16;
    std::vector<const std::byte*> q8_pointers;
    std::vector<const std::byte*> f16_pointers;
  };

  Blocks keys_;
  Blocks values_;
};

std::vector<float> RandomQueries(const Shape& shape, size_t tokens,
                                 double magnitude, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<float> q(tokens *
                       static_cast<size_t>(shape.heads * shape.key_dim));
  for (float& v : q) v = static_cast<float>(normal(random) * magnitude);
  return q;
}

AttentionArgs ArgsFor(const Shape& shape, const std::vector<float>& q,
                      const std::vector<AttentionToken>& tokens, float* out) {
  return {.q = q.data(),
          .out = out,
          .tokens = tokens.data(),
          .token_count = static_cast<int64_t>(tokens.size()),
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .key_dim = shape.key_dim,
          .value_dim = shape.value_dim,
          .scale = 1 / std::sqrt(static_cast<float>(shape.key_dim))};
}

std::vector<float> Attend(const Ops& ops, const Shape& shape,
                          const std::vector<float>& q,
                          const std::vector<AttentionToken>& tokens,
                          KvType type = KvType::kF16) {
  std::vector<float> out(tokens.size() *
                         static_cast<size_t>(shape.heads * shape.value_dim));
  AttentionArgs args = ArgsFor(shape, q, tokens, out.data());
  args.kv_type = type;
  ops.attention(args, 0, AttentionItems(args));
  return out;
}

// To compare bit for bit: == takes 0 and -0 for the same.
std::vector<uint32_t> BitsOf(const std::vector<float>& x) {
  std::vector<uint32_t> bits;
  for (const float v : x) bits.push_back(std::bit_cast<uint32_t>(v));
  return bits;
}

// Each token in a call of its own.
std::vector<float> AttendOneByOne(const Ops& ops, const Shape& shape,
                                  const std::vector<float>& q,
                                  const std::vector<AttentionToken>& tokens) {
  std::vector<float> all;
  const long width = static_cast<long>(shape.heads * shape.key_dim);
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto begin = q.begin() + static_cast<long>(t) * width;
    const std::vector<float> one = Attend(
        ops, shape, std::vector<float>(begin, begin + width), {tokens[t]});
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// Softmax written out; `bound` is what float arithmetic may differ by.
struct Reference {
  std::vector<double> out;
  std::vector<double> bound;
};

Reference AttendInDouble(const AttentionArgs& args, int64_t t, int64_t head) {
  const AttentionToken& token = args.tokens[t];
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const float* q = args.q + (t * args.heads + head) * args.key_dim;
  const int64_t keys = token.position + 1;
  std::vector<double> scores;
  double error = 0;  // of any score
  for (int64_t j = 0; j < keys; ++j) {
    const uint16_t* key = RowOf(token.key_blocks, kv_head, j, args.key_dim);
    double score = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < args.key_dim; ++i) {
      const double product = double{q[i]} * double{F16ToF32(key[i])};
      score += product;
      magnitude += std::fabs(product);
    }
    scores.push_back(score * args.scale);
    // Eight lanes or more, a tree of at most four levels, the scale.
    error = std::max(error, magnitude * args.scale * kFloatRounding *
                                (static_cast<double>(args.key_dim) / 8 + 6));
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  const double min = *std::min_element(scores.begin(), scores.end());
  double weight = 0;
  Reference reference;
  reference.out.resize(static_cast<size_t>(args.value_dim));
  std::vector<double> absolute(reference.out.size());
  for (int64_t j = 0; j < keys; ++j) {
    const double p = std::exp(scores[static_cast<size_t>(j)] - max);
    weight += p;
    const uint16_t* value =
        RowOf(token.value_blocks, kv_head, j, args.value_dim);
    for (size_t i = 0; i < absolute.size(); ++i) {
      const double v = F16ToF32(value[i]);
      reference.out[i] += p * v;
      absolute[i] += p * std::fabs(v);
    }
  }
  // A weight's relative error: its score's, the rounded difference from the
  // maximum (exp is below 2^-149 past 104), exp itself, and a correction a
  // tile; then sums over the keys. Numerator and denominator both.
  const double tiles = static_cast<double>(keys) / 64 + 1;
  const double range = std::min(max - min, 104.0);
  const double p_error =
      std::expm1(2 * error) +
      kFloatRounding * (2 * range + 4 * tiles + static_cast<double>(keys) + 8);
  for (size_t i = 0; i < absolute.size(); ++i) {
    reference.out[i] /= weight;
    reference.bound.push_back(2 * p_error * absolute[i] / weight + 1e-37);
  }
  return reference;
}

void ExpectNearReference(const Ops& ops, const Shape& shape,
                         const std::vector<float>& q,
                         const std::vector<AttentionToken>& tokens) {
  std::vector<float> out = Attend(ops, shape, q, tokens);
  const AttentionArgs args = ArgsFor(shape, q, tokens, out.data());
  for (int64_t t = 0; t < args.token_count; ++t) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const Reference reference = AttendInDouble(args, t, h);
      for (int64_t i = 0; i < shape.value_dim; ++i) {
        const size_t at = static_cast<size_t>(i);
        ASSERT_NEAR(out[static_cast<size_t>(
                        (t * shape.heads + h) * shape.value_dim + i)],
                    reference.out[at], reference.bound[at])
            << ops.name << ", token " << t << " at "
            << tokens[static_cast<size_t>(t)].position << ", head " << h
            << ", index " << i << ", key_dim " << shape.key_dim;
      }
    }
  }
}

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {
      {8, 1, 64, 64},   {4, 4, 80, 80},   {6, 2, 96, 96},   {3, 1, 100, 100},
      {4, 2, 128, 128}, {2, 1, 256, 256}, {5, 1, 24, 40},   {2, 2, 1, 1},
      {2, 1, 192, 128}, {7, 1, 70, 130},  {16, 1, 576, 512}};
  return shapes;
}

std::vector<AttentionToken> TokensOf(const Sequence& sequence, int64_t begin,
                                     int64_t count) {
  std::vector<AttentionToken> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(sequence.At(begin + i));
  return tokens;
}

TEST(AttentionTest, EveryRowMatchesSoftmaxInDoubleForAllShapes) {
  for (const Ops* ops : AvailableRows()) {
    for (const Shape& shape : Shapes()) {
      const Sequence sequence(shape, 150, 1, 7);
      const auto tokens = TokensOf(sequence, 137, 13);
      ExpectNearReference(*ops, shape,
                          RandomQueries(shape, tokens.size(), 1, 8), tokens);
    }
  }
}

TEST(AttentionTest, PositionsAroundTheTileBoundariesSeeTheirKeysOnly) {
  const Shape shape = {4, 2, 64, 64};
  // Unwritten positions hold NaN: one key too many poisons the result.
  for (const Ops* ops : AvailableRows()) {
    for (const int64_t position : {0, 1, 15, 16, 62, 63, 64, 65, 127, 128}) {
      const Sequence sequence(shape, position + 1, 1, 9);
      ExpectNearReference(*ops, shape, RandomQueries(shape, 1, 1, 10),
                          {sequence.At(position)});
    }
  }
}

TEST(AttentionTest, TheFirstTokenReturnsItsOwnValue) {
  const Shape shape = {2, 1, 64, 16};
  const Sequence sequence(shape, 1, 1, 11);
  for (const Ops* ops : AvailableRows()) {
    const std::vector<float> out =
        Attend(*ops, shape, RandomQueries(shape, 1, 1, 12), {sequence.At(0)});
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i],
                F16ToF32(RowOf(sequence.At(0).value_blocks, 0, 0, 16)[i % 16]))
          << ops->name;
  }
}

TEST(AttentionTest, AnyChunkingGivesTheSameBits) {
  for (const Ops* ops : AvailableRows()) {
    for (const Shape& shape : Shapes()) {
      if (ops->isa == Isa::kScalar && shape.key_dim > 200) continue;  // slow
      const Sequence sequence(shape, 140, 1, 13);
      // From position 0, so that tokens before, on and past a tile's end share
      // calls.
      const auto tokens = TokensOf(sequence, 0, 140);
      const auto q = RandomQueries(shape, tokens.size(), 1, 14);
      const std::vector<float> whole = Attend(*ops, shape, q, tokens);
      ASSERT_EQ(BitsOf(whole), BitsOf(AttendOneByOne(*ops, shape, q, tokens)))
          << ops->name << ", key_dim " << shape.key_dim;
      for (const size_t chunk : {3, 7, 8, 50}) {
        std::vector<float> pieces;
        for (size_t t = 0; t < tokens.size(); t += chunk) {
          const size_t end = std::min(t + chunk, tokens.size());
          const size_t width = q.size() / tokens.size();
          const std::vector<float> part = Attend(
              *ops, shape,
              std::vector<float>(q.begin() + static_cast<long>(t * width),
                                 q.begin() + static_cast<long>(end * width)),
              std::vector<AttentionToken>(
                  tokens.begin() + static_cast<long>(t),
                  tokens.begin() + static_cast<long>(end)));
          pieces.insert(pieces.end(), part.begin(), part.end());
        }
        ASSERT_EQ(BitsOf(pieces), BitsOf(whole))
            << ops->name << ", chunk " << chunk;
      }
    }
  }
}

TEST(AttentionTest, AnyItemRangeGivesTheSameBitsAndWritesNothingElse) {
  const Shape shape = {6, 3, 72, 72};
  const Sequence sequence(shape, 100, 1, 15);
  const auto tokens = TokensOf(sequence, 70, 30);
  const auto q = RandomQueries(shape, tokens.size(), 1, 16);
  for (const Ops* ops : AvailableRows()) {
    const std::vector<float> whole = Attend(*ops, shape, q, tokens);
    std::vector<float> out(whole.size(), -77.0f);
    const AttentionArgs args = ArgsFor(shape, q, tokens, out.data());
    const int64_t items = AttentionItems(args);
    ASSERT_EQ(items, 12);
    ops->attention(args, 5, 9);
    size_t written = 0;
    for (size_t i = 0; i < out.size(); ++i) written += out[i] != -77.0f;
    // Three full tiles of eight tokens and the last one of six, two heads.
    EXPECT_EQ(written, static_cast<size_t>((3 * 8 + 6) * 2 * 72));
    ops->attention(args, 9, 12);
    ops->attention(args, 0, 1);
    ops->attention(args, 1, 5);
    EXPECT_EQ(BitsOf(out), BitsOf(whole)) << ops->name;
  }
}

TEST(AttentionTest, SequencesMixedInOneTileGiveTheBitsOfEachAlone) {
  for (const Shape& shape : {Shape{8, 2, 64, 64}, Shape{3, 3, 80, 80}}) {
    const Sequence a(shape, 200, 1, 17);
    const Sequence b(shape, 64, 1, 18);
    const Sequence c(shape, 1, 1, 19);
    const std::vector<AttentionToken> tokens = {
        a.At(198), a.At(199), b.At(63), b.At(5), c.At(0),  a.At(0),
        b.At(10),  b.At(11),  a.At(64), a.At(3), a.At(65), c.At(0)};
    const auto q = RandomQueries(shape, tokens.size(), 1, 20);
    for (const Ops* ops : AvailableRows()) {
      EXPECT_EQ(BitsOf(Attend(*ops, shape, q, tokens)),
                BitsOf(AttendOneByOne(*ops, shape, q, tokens)))
          << ops->name;
      ExpectNearReference(*ops, shape, q, tokens);
    }
  }
}

TEST(AttentionTest, ScoresOfAHundredThousandDoNotOverflow) {
  const Shape shape = {4, 1, 64, 64};
  const Sequence sequence(shape, 130, 2000, 21);
  const auto tokens = TokensOf(sequence, 120, 10);
  // q.k of about 50 * 2000 * 8 before the scale of 1/8.
  const auto q = RandomQueries(shape, tokens.size(), 50, 22);
  for (const Ops* ops : AvailableRows()) {
    const std::vector<float> out = Attend(*ops, shape, q, tokens);
    EXPECT_TRUE(ops->all_finite(out.data(), static_cast<int64_t>(out.size())));
    ExpectNearReference(*ops, shape, q, tokens);
  }
}

TEST(AttentionTest, ALongContextMatchesSoftmaxInDouble) {
  const Shape shape = {4, 1, 64, 64};
  const Sequence sequence(shape, 4000, 1.5, 23);
  const std::vector<AttentionToken> tokens = {sequence.At(3999)};
  const auto q = RandomQueries(shape, 1, 1.5, 24);
  for (const Ops* ops : AvailableRows())
    ExpectNearReference(*ops, shape, q, tokens);
}

TEST(AttentionTest, TilesOfQ8GiveTheBitsOfTheHalvesTheyStandFor) {
  for (const Ops* ops : AvailableRows()) {
    for (const Shape& shape : Shapes()) {
      if (std::max(shape.key_dim, shape.value_dim) > kMostQ8KvDim) continue;
      const Q8Sequence sequence(shape, 150, 27);
      // One token, which reads tiles of f16 as they are, and more.
      for (const int64_t count : {1, 13}) {
        const auto q = RandomQueries(shape, static_cast<size_t>(count), 1, 28);
        const auto attend = [&](KvType type) {
          return BitsOf(Attend(
              *ops, shape, q, sequence.Tokens(type, 150 - count, count), type));
        };
        EXPECT_EQ(attend(KvType::kQ8_0), attend(KvType::kF16))
            << ops->name << ", key_dim " << shape.key_dim << ", " << count
            << " tokens";
      }
    }
  }
}

TEST(AttentionTest, NanInAQueryStaysInItsRow) {
  const Shape shape = {4, 1, 64, 64};
  const Sequence sequence(shape, 80, 1, 25);
  const auto tokens = TokensOf(sequence, 72, 8);
  const auto q = RandomQueries(shape, tokens.size(), 1, 26);
  auto poisoned = q;
  poisoned[5 * 64 + 3] = std::numeric_limits<float>::quiet_NaN();  // row 5
  for (const Ops* ops : AvailableRows()) {
    const std::vector<float> clean = Attend(*ops, shape, q, tokens);
    const std::vector<float> out = Attend(*ops, shape, poisoned, tokens);
    for (size_t i = 0; i < out.size(); ++i) {
      if (i / 64 == 5)
        ASSERT_TRUE(std::isnan(out[i])) << ops->name;
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(out[i]),
                  std::bit_cast<uint32_t>(clean[i]))
            << ops->name;
    }
  }
}

}  // namespace
}  // namespace coldstream
