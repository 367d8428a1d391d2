#include "tools/random_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "tools/random_stream.h"

namespace coldstream {
namespace {

// Block magnitudes range over one step of this much either way.
constexpr double kScaleSpread = 0.25;
constexpr uint64_t kFloatTableSeed = 0x6f5cbd9a3e8241d7ull;

// The sixteen values of an iq4 code. Source: GGUF block format IQ4_NL.
constexpr std::array<int, 16> kIq4Values = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// The eight magnitudes of an fp4 (e2m1) code. Source: OCP Microscaling Formats
// (MX) specification v1.0, table 5.
constexpr std::array<double, 8> kFp4Values = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

// Mean of (code - centre)^2 over the whole numbers first..last.
double MeanSquare(int first, int last, double centre) {
  double sum = 0;
  for (int code = first; code <= last; ++code)
    sum += (code - centre) * (code - centre);
  return sum / (last - first + 1);
}

// ... over int8 where -128 has become 0.
double MeanSquareInt8() { return MeanSquare(-127, 127, 0) * 255 / 256; }

double MeanSquareIq4() {
  double sum = 0;
  for (const int value : kIq4Values) sum += value * value;
  return sum / static_cast<double>(kIq4Values.size());
}

double MeanSquareFp4() {
  double sum = 0;
  for (const double value : kFp4Values) sum += value * value;
  return sum / static_cast<double>(kFp4Values.size());
}

// How a type's scale d relates to its weights.
struct ScaleRule {
  double mean_square;        // of weight / d, over random codes and sub-scales
  double min_ratio;          // the second scale field as a multiple of d
  bool random_sign = false;  // d negative in half of the blocks, so that codes
                             // whose mean is not zero average out
};

ScaleRule RuleFor(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return {MeanSquare(0, 15, 8), 0, true};
    case DType::kQ4_1:
      return {MeanSquare(0, 15, 7.5), -7.5};
    case DType::kQ5_0:
      return {MeanSquare(0, 31, 16), 0, true};
    case DType::kQ5_1:
      return {MeanSquare(0, 31, 15.5), -15.5};
    case DType::kQ8_0:
      return {MeanSquareInt8(), 0};
    case DType::kQ2_K:  // sub-scale 8..15, the same for scale and minimum
      return {MeanSquare(8, 15, 0) * MeanSquare(0, 3, 1.5), 1.5};
    case DType::kQ3_K:
      return {MeanSquare(0, 63, 32) * MeanSquare(-4, 3, 0), 0};
    case DType::kQ4_K:  // sub-scale 0..63, the same for scale and minimum
      return {MeanSquare(0, 63, 0) * MeanSquare(0, 15, 7.5), 7.5};
    case DType::kQ5_K:
      return {MeanSquare(0, 63, 0) * MeanSquare(0, 31, 15.5), 15.5};
    case DType::kQ6_K:
      return {MeanSquareInt8() * MeanSquare(0, 63, 32), 0};
    case DType::kIQ4_NL:
      return {MeanSquareIq4(), 0, true};
    case DType::kIQ4_XS:
      return {MeanSquare(0, 63, 32) * MeanSquareIq4(), 0};
    default:
      CHECK(false);  // no scale field of this kind
  }
}

template <typename Value>
void Put(std::byte* at, Value value) {
  std::memcpy(at, &value, sizeof(value));
}

// Eight int8 with every -128 made 0, which leaves their mean at zero.
uint64_t WithoutMinus128(uint64_t bytes) {
  constexpr uint64_t kLow7 = 0x7f7f7f7f7f7f7f7full;
  const uint64_t flipped = bytes ^ ~kLow7;  // -128 becomes 0
  const uint64_t not_zero = ((flipped & kLow7) + kLow7) | flipped;
  return bytes & (not_zero | kLow7);
}

void DropMinus128(std::byte* at, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word;
    std::memcpy(&word, at + i, 8);
    Put(at + i, WithoutMinus128(word));
  }
}

// q2_k keeps 4 bits of scale and 4 of minimum a byte: both equal, in 8..15.
void EqualiseQ2K(std::byte* scales) {
  for (size_t i = 0; i < 16; i += 8) {
    uint64_t word;
    std::memcpy(&word, scales + i, 8);
    word = (word & 0x0707070707070707ull) | 0x0808080808080808ull;
    Put(scales + i, word | (word << 4));
  }
}

// The 12 bytes of q4_k and q5_k hold eight 6-bit scales and eight 6-bit
// minimums: bytes 0-3 the low bits of scales 0-3, 4-7 of minimums 0-3, 8-11 a
// nibble of scale and one of minimum 4-7, whose top bits are those of 0-7.
// Copies make each minimum equal its scale.
void EqualiseQ4K(std::byte* scales) {
  uint32_t low;
  uint32_t nibbles;
  std::memcpy(&low, scales, 4);
  std::memcpy(&nibbles, scales + 8, 4);
  nibbles &= 0x0f0f0f0fu;
  Put(scales + 4, low);
  Put(scales + 8, nibbles | (nibbles << 4));
}

// Blocks of kBytes random bytes, each handed to patch(block, random) to become
// a legal block.
template <size_t kBytes, typename Patch>
void FillBlocks(RandomStream random, std::span<std::byte> out, Patch patch) {
  for (size_t at = 0; at < out.size(); at += kBytes) {
    std::byte* block = out.data() + at;
    for (size_t i = 0; i + 8 <= kBytes; i += 8) Put(block + i, random.Next());
    const uint64_t last = random.Next();
    std::memcpy(block + kBytes / 8 * 8, &last, kBytes % 8);
    patch(block, random.Next());
  }
}

// Table entries drawn by 12 bits each, five from one random word.
template <typename Value>
void FillFloats(RandomStream random, std::span<std::byte> out,
                std::span<const uint32_t> table) {
  constexpr size_t kPerWord = 5;
  const size_t count = out.size() / sizeof(Value);
  std::byte* at = out.data();
  for (size_t done = 0; done < count; done += kPerWord) {
    uint64_t word = random.Next();
    const size_t take = count - done < kPerWord ? count - done : kPerWord;
    for (size_t i = 0; i < take; ++i, word >>= 12, at += sizeof(Value))
      Put(at, static_cast<Value>(table[word & 0xfff]));
  }
}

}  // namespace

RandomBlocks::RandomBlocks(DType type, double stddev) : type_(type) {
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      MakeFloats(0, stddev);
      break;
    case DType::kMXFP4:
      MakeExponents(stddev);
      break;
    default:
      MakeScales(stddev);
  }
}

RandomBlocks RandomBlocks::Floats(double mean, double stddev) {
  RandomBlocks blocks;
  blocks.MakeFloats(mean, stddev);
  return blocks;
}

void RandomBlocks::MakeScales(double stddev) {
  const ScaleRule rule = RuleFor(type_);
  // Uniform factors in 1 +- spread have a mean square of 1 + spread^2 / 3.
  const double d = stddev / std::sqrt(rule.mean_square *
                                      (1 + kScaleSpread * kScaleSpread / 3));
  for (size_t i = 0; i < kScales; ++i) {
    const double place = (static_cast<double>(i) + 0.5) / kScales;
    double value = d * (1 + kScaleSpread * (2 * place - 1));
    if (rule.random_sign && i % 2 == 1) value = -value;
    Scale& scale = scales_[i];
    scale.d = F32ToF16(static_cast<float>(value));
    // From the rounded d, so that the mean stays zero.
    scale.min = F32ToF16(
        static_cast<float>(rule.min_ratio * double{F16ToF32(scale.d)}));
  }
}

void RandomBlocks::MakeExponents(double stddev) {
  // A share of blocks gets the power of two below, the rest the one above, so
  // that the mean square comes out.
  const double unit = stddev / std::sqrt(MeanSquareFp4());
  const int below = std::ilogb(unit);
  const double ratio = unit / std::ldexp(1.0, below);  // [1, 2)
  const double share_above = (ratio * ratio - 1) / 3;
  const auto count =
      static_cast<size_t>(std::lround(share_above * double{kScales}));
  for (size_t i = 0; i < kScales; ++i)
    exponents_[i] = static_cast<uint8_t>(127 + below + (i < count ? 1 : 0));
}

void RandomBlocks::MakeFloats(double mean, double stddev) {
  // Sums of twelve uniforms, in pairs v, -v, scaled to a mean square of one.
  RandomStream random(kFloatTableSeed);
  std::vector<double> values;
  double sum = 0;
  while (values.size() < kFloats) {
    double value = -6;
    for (int i = 0; i < 12; ++i) value += random.NextUnit();
    values.push_back(value);
    values.push_back(-value);
    sum += 2 * value * value;
  }
  const double factor = stddev / std::sqrt(sum / double{kFloats});
  floats_.clear();
  for (const double value : values) {
    const auto f = static_cast<float>(mean + factor * value);
    if (type_ == DType::kF16) {
      floats_.push_back(F32ToF16(f));
    } else if (type_ == DType::kBF16) {
      floats_.push_back(F32ToBF16(f));
    } else {
      floats_.push_back(std::bit_cast<uint32_t>(f));
    }
  }
}

void RandomBlocks::Fill(uint64_t seed, std::span<std::byte> out) const {
  CHECK(out.size() % InfoOf(type_).block_bytes == 0);
  const RandomStream random(seed);
  const auto d_only = [this](std::byte* block, uint64_t r) {
    Put(block, scales_[r % kScales].d);
  };
  const auto d_and_min = [this](std::byte* block, uint64_t r) {
    Put(block, scales_[r % kScales]);
  };
  static_assert(sizeof(Scale) == 4);
  switch (type_) {
    case DType::kF32:
      return FillFloats<uint32_t>(random, out, floats_);
    case DType::kF16:
    case DType::kBF16:
      return FillFloats<uint16_t>(random, out, floats_);
    case DType::kQ4_0:
    case DType::kIQ4_NL:
      return FillBlocks<18>(random, out, d_only);
    case DType::kQ4_1:
      return FillBlocks<20>(random, out, d_and_min);
    case DType::kQ5_0:
      return FillBlocks<22>(random, out, d_only);
    case DType::kQ5_1:
      return FillBlocks<24>(random, out, d_and_min);
    case DType::kQ8_0:
      return FillBlocks<34>(random, out, [&](std::byte* block, uint64_t r) {
        d_only(block, r);
        DropMinus128(block + 2, 32);
      });
    case DType::kQ2_K:
      return FillBlocks<84>(random, out, [&](std::byte* block, uint64_t r) {
        EqualiseQ2K(block);
        d_and_min(block + 80, r);
      });
    case DType::kQ3_K:
      return FillBlocks<110>(random, out, [&](std::byte* block, uint64_t r) {
        d_only(block + 108, r);
      });
    case DType::kQ4_K:
      return FillBlocks<144>(random, out, [&](std::byte* block, uint64_t r) {
        d_and_min(block, r);
        EqualiseQ4K(block + 4);
      });
    case DType::kQ5_K:
      return FillBlocks<176>(random, out, [&](std::byte* block, uint64_t r) {
        d_and_min(block, r);
        EqualiseQ4K(block + 4);
      });
    case DType::kQ6_K:
      return FillBlocks<210>(random, out, [&](std::byte* block, uint64_t r) {
        DropMinus128(block + 192, 16);
        d_only(block + 208, r);
      });
    case DType::kIQ4_XS:
      return FillBlocks<136>(random, out, d_only);
    case DType::kMXFP4:
      return FillBlocks<17>(random, out, [this](std::byte* block, uint64_t r) {
        Put(block, exponents_[r % kScales]);
      });
  }
}

}  // namespace coldstream
