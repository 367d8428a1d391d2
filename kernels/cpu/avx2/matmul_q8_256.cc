// Products with the types of 256-value blocks, Q2_K to Q6_K and IQ4_XS, of one
// token; several go over tiles of rows (matmul_tiles_256.cc).
//
// The whole of a block's sum, group scales included, is an exact integer: pairs
// of products (vpmaddubsw, at most 2 * 63 * 127 < 2^15) times the group's scale
// (vpmaddwd), added up over the block. So is that of the minima. Eight blocks'
// sums lie in the lanes of a vector, where they are scaled and added to the
// eight blocks before; a tree adds the lanes. The order is the same for one
// token and for many.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/activations.h"
#include "kernels/cpu/avx2/lanes.h"
#include "kernels/cpu/avx2/matmul_tiles.h"
#include "kernels/quant_blocks.h"

namespace coldstream {
namespace {

// What is added to the sum of scale * number * x.
enum class Extra : uint8_t {
  kNone,     // numbers are signed
  kOffset,   // numbers less a constant: an integer, in of_16
  kMinimum,  // groups have minimums with a scale of their own
};

// One block.
struct Unpacked {
  __m256i numbers[8];  // 32 values each, in order
  __m256i scale[8];    // int16 for each pair of values
  __m256i of_16;       // offset or minimum, int16 for each 16 values; or
  __m128i minimum32;   // minimum, int16 for each 32 values
};

uint32_t WordAt(const uint8_t* p) {
  uint32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return word;
}

__m256i Load32(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// Bits [shift, shift + width) of every byte.
template <int kWidth>
__m256i Bits(__m256i v, int shift) {
  return _mm256_and_si256(_mm256_srli_epi16(v, shift),
                          _mm256_set1_epi8((1 << kWidth) - 1));
}

// Which bytes of both halves of a vector, int16 scales, make the scales of 32
// values: of_32 for eight groups of 32; of_16 for the eight of 16 that begin or
// end the block.
struct alignas(32) Picks {
  int8_t of_32[8][32];
  int8_t of_16[4][32];
};
constexpr Picks MakePicks() {
  Picks picks = {};
  for (int g = 0; g < 8; ++g) {
    for (int i = 0; i < 32; ++i) {
      picks.of_32[g][i] = static_cast<int8_t>(2 * g + i % 2);
      if (g < 4)
        picks.of_16[g][i] = static_cast<int8_t>(4 * g + 2 * (i / 16) + i % 2);
    }
  }
  return picks;
}
constexpr Picks kPicks = MakePicks();

__m256i Pick(__m256i scales, const int8_t* indices) {
  return _mm256_shuffle_epi8(
      scales, _mm256_load_si256(reinterpret_cast<const __m256i*>(indices)));
}

// Scales of eight 32-value groups, as int16.
void SpreadScales32(__m128i scales, Unpacked* out) {
  const __m256i twice = _mm256_broadcastsi128_si256(scales);
  for (int g = 0; g < 8; ++g) out->scale[g] = Pick(twice, kPicks.of_32[g]);
}

// Scales of sixteen 16-value groups, as int16.
void SpreadScales16(__m256i scales, Unpacked* out) {
  const __m256i first = _mm256_permute4x64_epi64(scales, 0x44);
  const __m256i last = _mm256_permute4x64_epi64(scales, 0xee);
  for (int g = 0; g < 4; ++g) {
    out->scale[g] = Pick(first, kPicks.of_16[g]);
    out->scale[g + 4] = Pick(last, kPicks.of_16[g]);
  }
}

struct Q2_K {
  using Block = BlockQ2_K;
  static constexpr Extra kExtra = Extra::kMinimum;
  static constexpr DType kType = DType::kQ2_K;
  static constexpr bool kMinimaOf16 = true;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ2_K;
  static void Unpack(const Block& b, Unpacked* out) {
    for (int half = 0; half < 2; ++half) {
      const __m256i v = Load32(b.qs + 32 * half);
      for (int j = 0; j < 4; ++j)
        out->numbers[4 * half + j] = Bits<2>(v, 2 * j);
    }
    const __m128i both =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.scales));
    const __m128i low = _mm_set1_epi8(15);
    SpreadScales16(_mm256_cvtepu8_epi16(_mm_and_si128(both, low)), out);
    out->of_16 =
        _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(both, 4), low));
  }
};

struct Q3_K {
  using Block = BlockQ3_K;
  static constexpr Extra kExtra = Extra::kOffset;
  static constexpr DType kType = DType::kQ3_K;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ3_K;
  static void Unpack(const Block& b, Unpacked* out) {
    const __m256i third = Load32(b.hmask);
    for (int half = 0; half < 2; ++half) {
      const __m256i v = Load32(b.qs + 32 * half);
      for (int j = 0; j < 4; ++j) {
        const int g = 4 * half + j;
        out->numbers[g] = _mm256_or_si256(
            Bits<2>(v, 2 * j), _mm256_slli_epi16(Bits<1>(third, g), 2));
      }
    }
    constexpr uint32_t kFour = 0x0f0f0f0fu;
    constexpr uint32_t kTwo = 0x03030303u;
    const uint32_t a = WordAt(b.scales);
    const uint32_t c = WordAt(b.scales + 4);
    const uint32_t top = WordAt(b.scales + 8);
    const auto word = [](uint32_t low, uint32_t high) {
      return static_cast<int>((low & kFour) | ((high & kTwo) << 4));
    };
    const __m128i scales = _mm_sub_epi8(
        _mm_setr_epi32(word(a, top), word(c, top >> 2), word(a >> 4, top >> 4),
                       word(c >> 4, top >> 6)),
        _mm_set1_epi8(32));
    const __m256i wide = _mm256_cvtepi8_epi16(scales);
    SpreadScales16(wide, out);
    // Numbers are stored with 4 added.
    out->of_16 = _mm256_mullo_epi16(wide, _mm256_set1_epi16(-4));
  }
};

// The packed scales and minimums that Q4_K and Q5_K share.
void UnpackScalesAndMinimums(const uint8_t* scales, Unpacked* out) {
  constexpr uint32_t kSix = 0x3f3f3f3fu;
  constexpr uint32_t kFour = 0x0f0f0f0fu;
  constexpr uint32_t kTwo = 0x03030303u;
  const uint32_t a = WordAt(scales);
  const uint32_t c = WordAt(scales + 4);
  const uint32_t e = WordAt(scales + 8);
  const uint32_t scales_high = (e & kFour) | (((a >> 6) & kTwo) << 4);
  const uint32_t minimums_high = ((e >> 4) & kFour) | (((c >> 6) & kTwo) << 4);
  const __m128i all = _mm_setr_epi32(
      static_cast<int>(a & kSix), static_cast<int>(scales_high),
      static_cast<int>(c & kSix), static_cast<int>(minimums_high));
  const __m256i wide = _mm256_cvtepu8_epi16(all);
  SpreadScales32(_mm256_castsi256_si128(wide), out);
  out->minimum32 = _mm256_extracti128_si256(wide, 1);
}

struct Q4_K {
  using Block = BlockQ4_K;
  static constexpr Extra kExtra = Extra::kMinimum;
  static constexpr DType kType = DType::kQ4_K;
  static constexpr bool kMinimaOf16 = false;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ4_K;
  static void Unpack(const Block& b, Unpacked* out) {
    for (int j = 0; j < 4; ++j) {
      const __m256i v = Load32(b.qs + 32 * j);
      out->numbers[2 * j] = Bits<4>(v, 0);
      out->numbers[2 * j + 1] = Bits<4>(v, 4);
    }
    UnpackScalesAndMinimums(b.scales, out);
  }
};

struct Q5_K {
  using Block = BlockQ5_K;
  static constexpr Extra kExtra = Extra::kMinimum;
  static constexpr DType kType = DType::kQ5_K;
  static constexpr bool kMinimaOf16 = false;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ5_K;
  static void Unpack(const Block& b, Unpacked* out) {
    const __m256i fifth = Load32(b.qh);
    for (int g = 0; g < 8; ++g) {
      const __m256i v = Load32(b.qs + 32 * (g / 2));
      out->numbers[g] = _mm256_or_si256(
          Bits<4>(v, g % 2 * 4), _mm256_slli_epi16(Bits<1>(fifth, g), 4));
    }
    UnpackScalesAndMinimums(b.scales, out);
  }
};

struct Q6_K {
  using Block = BlockQ6_K;
  static constexpr Extra kExtra = Extra::kOffset;
  static constexpr DType kType = DType::kQ6_K;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ6_K;
  static void Unpack(const Block& b, Unpacked* out) {
    for (int half = 0; half < 2; ++half) {
      const __m256i high = Load32(b.qh + 32 * half);
      for (int j = 0; j < 4; ++j) {
        const __m256i low = Load32(b.ql + 64 * half + j % 2 * 32);
        out->numbers[4 * half + j] =
            _mm256_or_si256(Bits<4>(low, j / 2 * 4),
                            _mm256_slli_epi16(Bits<2>(high, 2 * j), 4));
      }
    }
    const __m128i scales =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.scales));
    const __m256i wide = _mm256_cvtepi8_epi16(scales);
    SpreadScales16(wide, out);
    // Numbers are stored with 32 added.
    out->of_16 = _mm256_mullo_epi16(wide, _mm256_set1_epi16(-32));
  }
};

struct IQ4_XS {
  using Block = BlockIQ4_XS;
  static constexpr Extra kExtra = Extra::kNone;
  static constexpr DType kType = DType::kIQ4_XS;
  static constexpr avx2::RowsFn kTiles = avx2::TilesIQ4_XS;
  static void Unpack(const Block& b, Unpacked* out) {
    const __m256i table = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Values)));
    for (int g = 0; g < 8; ++g) {
      const __m128i v =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.qs + 16 * g));
      out->numbers[g] = _mm256_shuffle_epi8(
          table, Bits<4>(_mm256_set_m128i(_mm_srli_epi16(v, 4), v), 0));
    }
    uint16_t high;
    __builtin_memcpy(&high, b.scales_h, sizeof(high));
    const __m256i top = _mm256_srlv_epi32(
        _mm256_set1_epi32(high), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i low = _mm256_srlv_epi32(
        _mm256_set1_epi32(static_cast<int>(WordAt(b.scales_l))),
        _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i scales = _mm256_or_si256(
        _mm256_and_si256(low, _mm256_set1_epi32(15)),
        _mm256_slli_epi32(_mm256_and_si256(top, _mm256_set1_epi32(3)), 4));
    const __m256i less = _mm256_sub_epi32(scales, _mm256_set1_epi32(32));
    SpreadScales32(_mm_packs_epi32(_mm256_castsi256_si128(less),
                                   _mm256_extracti128_si256(less, 1)),
                   out);
  }
};

// --- Sums of a block, of eight blocks, of a row ------------------------------

// The sum of scale * number * x in eight lanes. x: the block's.
template <typename Type>
__m256i Dot(const Unpacked& w, const int8_t* x) {
  __m256i total = _mm256_setzero_si256();
  for (int g = 0; g < 8; ++g) {
    __m256i v =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 32 * g));
    __m256i pairs;
    if constexpr (Type::kExtra == Extra::kNone)
      pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w.numbers[g]),
                                   _mm256_sign_epi8(v, w.numbers[g]));
    else
      pairs = _mm256_maddubs_epi16(w.numbers[g], v);
    total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, w.scale[g]));
  }
  return total;
}

// of_16 times the sums of x, in eight lanes. sum16: the block's.
__m256i Times16(const Unpacked& w, const int16_t* sum16) {
  return _mm256_madd_epi16(
      w.of_16, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sum16)));
}

// The minima times the sums of x, in four lanes.
template <typename Type>
__m128i Minima(const Unpacked& w, const Q8_256Row& x, int64_t block) {
  if constexpr (Type::kMinimaOf16) {
    const __m256i eight = Times16(w, x.sum16 + 16 * block);
    return _mm_add_epi32(_mm256_castsi256_si128(eight),
                         _mm256_extracti128_si256(eight, 1));
  } else {
    return _mm_madd_epi16(
        w.minimum32,
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(x.sum32 + 8 * block)));
  }
}

// The F16 at byte `offset` of n blocks, at most eight, as floats.
template <typename Block>
__m256 HalvesAt(const Block* w, int64_t n, size_t offset) {
  const auto at = [w, n, offset](int i) {
    int16_t bits;
    __builtin_memcpy(
        &bits, reinterpret_cast<const uint8_t*>(w + (i < n ? i : 0)) + offset,
        sizeof(bits));
    return bits;
  };
  return _mm256_cvtph_ps(
      _mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)));
}

// Adds the products of blocks [b, b + n), at most eight, to lanes 0 .. n - 1 of
// `sum`.
template <typename Type>
[[gnu::always_inline]] inline __m256 AddBlocks(const typename Type::Block* w,
                                               const Q8_256Row& x, int64_t b,
                                               int64_t n, __m256 sum) {
  using Block = typename Type::Block;
  __m256i total[8];
  __m128i minima[8];
  for (int64_t i = n; i < 8; ++i) {
    total[i] = _mm256_setzero_si256();
    minima[i] = _mm_setzero_si128();
  }
#pragma GCC unroll 1
  for (int64_t i = 0; i < n; ++i) {
    Unpacked block;
    Type::Unpack(w[i], &block);
    total[i] = Dot<Type>(block, x.q + 256 * (b + i));
    if constexpr (Type::kExtra == Extra::kOffset)
      total[i] =
          _mm256_add_epi32(total[i], Times16(block, x.sum16 + 16 * (b + i)));
    if constexpr (Type::kExtra == Extra::kMinimum)
      minima[i] = Minima<Type>(block, x, b + i);
  }
  __m256 value = _mm256_cvtepi32_ps(SumEach(total));
  const __m256 d = HalvesAt(w, n, offsetof(Block, d));
  if constexpr (Type::kExtra == Extra::kMinimum)
    value =
        _mm256_fmsub_ps(value, d,
                        _mm256_mul_ps(_mm256_cvtepi32_ps(SumEach(minima)),
                                      HalvesAt(w, n, offsetof(Block, dmin))));
  else
    value = _mm256_mul_ps(value, d);
  const __m256 added = _mm256_fmadd_ps(value, LoadFirst(x.scale + b, n), sum);
  return n == 8 ? added : FirstOf(n, added, sum);
}

template <typename Type>
void OneToken(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  const int64_t k = args.weight.cols;
  const int64_t blocks = k / 256;
  const Q8_256Row x = ViewQ8_256(args.activations, k);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const auto* w =
        reinterpret_cast<const typename Type::Block*>(args.weight.data) +
        row * blocks;
    __m256 sum = _mm256_setzero_ps();
    int64_t b = 0;
    for (; b + 8 <= blocks; b += 8) sum = AddBlocks<Type>(w + b, x, b, 8, sum);
    if (b < blocks) sum = AddBlocks<Type>(w + b, x, b, blocks - b, sum);
    args.out[row] = SumLanes(sum);
  }
}

template <typename Type>
void Rows(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  if (args.tokens == 1)
    OneToken<Type>(args, row_begin, row_end);
  else
    Type::kTiles(args, row_begin, row_end);
}

template <typename Type>
void Register(Ops* ops) {
  ops->matmul[static_cast<size_t>(Type::kType)].rows = Rows<Type>;
}

}  // namespace

void RegisterAvx2MatmulQ8_256(Ops* ops) {
  Register<Q2_K>(ops);
  Register<Q3_K>(ops);
  Register<Q4_K>(ops);
  Register<Q5_K>(ops);
  Register<Q6_K>(ops);
  Register<IQ4_XS>(ops);
}

}  // namespace coldstream

#endif  // __AVX2__
