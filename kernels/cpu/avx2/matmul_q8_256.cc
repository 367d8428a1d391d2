// Products with the types of 256-value blocks: Q2_K to Q6_K and IQ4_XS.
//
// The whole of a block's sum, group scales included, is an exact integer in
// eight lanes: pairs of products (vpmaddubsw, at most 2 * 63 * 127 < 2^15)
// times the group's scale (vpmaddwd). Lanes are scaled once a block and added
// block after block, minimums likewise; a tree sums the lanes. The order is the
// same for one token and for many.

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/activations.h"
#include "kernels/cpu/avx2/lanes.h"
#include "kernels/quant_blocks.h"

namespace coldstream {
namespace {

constexpr int64_t kRowChunkBytes = 128 * 1024;

// What is added to the sum of scale * number * x.
enum class Extra : uint8_t {
  kNone,     // numbers are signed
  kOffset,   // numbers less a constant: an integer, in offset
  kMinimum,  // groups have minimums with a scale of their own
};

// One block, ready for any number of tokens.
struct Unpacked {
  __m256i numbers[8];  // 32 values each, in order
  __m256i scale[8];    // int16 for each pair of values
  __m256i offset;      // int16 for each 16 values
  float d;
  float dmin;
};

float HalfAt(const uint8_t* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return _cvtsh_ss(bits);
}

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

// Each of eight int32, which fit int16, in both halves of its lane.
__m256i Doubled(__m256i v) {
  return _mm256_or_si256(_mm256_slli_epi32(v, 16),
                         _mm256_and_si256(v, _mm256_set1_epi32(0xffff)));
}

// Scales of eight 32-value groups, as eight int32.
void SpreadScales32(__m256i scales, Unpacked* out) {
  const __m256i doubled = Doubled(scales);
  for (int g = 0; g < 8; ++g)
    out->scale[g] = _mm256_permutevar8x32_epi32(doubled, _mm256_set1_epi32(g));
}

// Scales of sixteen 16-value groups, as sixteen int8.
void SpreadScales16(__m128i scales, Unpacked* out) {
  const __m256i first = Doubled(_mm256_cvtepi8_epi32(scales));
  const __m256i last =
      Doubled(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(scales, scales)));
  __m256i index = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  for (int g = 0; g < 4; ++g) {
    out->scale[g] = _mm256_permutevar8x32_epi32(first, index);
    out->scale[g + 4] = _mm256_permutevar8x32_epi32(last, index);
    index = _mm256_add_epi32(index, _mm256_set1_epi32(2));
  }
}

struct Q2_K {
  using Block = BlockQ2_K;
  static constexpr Extra kExtra = Extra::kMinimum;
  static constexpr DType kType = DType::kQ2_K;
  static void Unpack(const Block& b, Unpacked* out) {
    for (int half = 0; half < 2; ++half) {
      const __m256i v = Load32(b.qs + 32 * half);
      for (int j = 0; j < 4; ++j)
        out->numbers[4 * half + j] = Bits<2>(v, 2 * j);
    }
    const __m128i both =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.scales));
    const __m128i low = _mm_set1_epi8(15);
    SpreadScales16(_mm_and_si128(both, low), out);
    out->offset =
        _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(both, 4), low));
    out->d = HalfAt(b.d);
    out->dmin = HalfAt(b.dmin);
  }
};

struct Q3_K {
  using Block = BlockQ3_K;
  static constexpr Extra kExtra = Extra::kOffset;
  static constexpr DType kType = DType::kQ3_K;
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
    SpreadScales16(scales, out);
    // Numbers are stored with 4 added.
    out->offset =
        _mm256_mullo_epi16(_mm256_cvtepi8_epi16(scales), _mm256_set1_epi16(-4));
    out->d = HalfAt(b.d);
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
  SpreadScales32(_mm256_cvtepu8_epi32(all), out);
  // Each minimum twice: the activations' sums are of sixteen values.
  const __m128i minimums = _mm_unpackhi_epi8(all, all);
  out->offset = _mm256_cvtepu8_epi16(minimums);
}

struct Q4_K {
  using Block = BlockQ4_K;
  static constexpr Extra kExtra = Extra::kMinimum;
  static constexpr DType kType = DType::kQ4_K;
  static void Unpack(const Block& b, Unpacked* out) {
    for (int j = 0; j < 4; ++j) {
      const __m256i v = Load32(b.qs + 32 * j);
      out->numbers[2 * j] = Bits<4>(v, 0);
      out->numbers[2 * j + 1] = Bits<4>(v, 4);
    }
    UnpackScalesAndMinimums(b.scales, out);
    out->d = HalfAt(b.d);
    out->dmin = HalfAt(b.dmin);
  }
};

struct Q5_K {
  using Block = BlockQ5_K;
  static constexpr Extra kExtra = Extra::kMinimum;
  static constexpr DType kType = DType::kQ5_K;
  static void Unpack(const Block& b, Unpacked* out) {
    const __m256i fifth = Load32(b.qh);
    for (int g = 0; g < 8; ++g) {
      const __m256i v = Load32(b.qs + 32 * (g / 2));
      out->numbers[g] = _mm256_or_si256(
          Bits<4>(v, g % 2 * 4), _mm256_slli_epi16(Bits<1>(fifth, g), 4));
    }
    UnpackScalesAndMinimums(b.scales, out);
    out->d = HalfAt(b.d);
    out->dmin = HalfAt(b.dmin);
  }
};

struct Q6_K {
  using Block = BlockQ6_K;
  static constexpr Extra kExtra = Extra::kOffset;
  static constexpr DType kType = DType::kQ6_K;
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
    SpreadScales16(scales, out);
    // Numbers are stored with 32 added.
    out->offset = _mm256_mullo_epi16(_mm256_cvtepi8_epi16(scales),
                                     _mm256_set1_epi16(-32));
    out->d = HalfAt(b.d);
  }
};

struct IQ4_XS {
  using Block = BlockIQ4_XS;
  static constexpr Extra kExtra = Extra::kNone;
  static constexpr DType kType = DType::kIQ4_XS;
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
    SpreadScales32(_mm256_sub_epi32(scales, _mm256_set1_epi32(32)), out);
    out->d = HalfAt(b.d);
  }
};

__m256i LoadSums(const int16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// total[t] = the block's integer sum in eight lanes, for kTokens tokens.
template <typename Type, int kTokens>
void Dot(const Unpacked& w, const Q8_256Row* x, int64_t block, __m256i* total) {
  for (int t = 0; t < kTokens; ++t)
    total[t] =
        Type::kExtra == Extra::kOffset
            ? _mm256_madd_epi16(w.offset, LoadSums(x[t].sum16 + 16 * block))
            : _mm256_setzero_si256();
  for (int g = 0; g < 8; ++g) {
    const __m256i numbers = w.numbers[g];
    const __m256i scale = w.scale[g];
    for (int t = 0; t < kTokens; ++t) {
      __m256i v = _mm256_loadu_si256(
          reinterpret_cast<const __m256i*>(x[t].q + 256 * block + 32 * g));
      __m256i pairs;
      if constexpr (Type::kExtra == Extra::kNone)
        pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(numbers),
                                     _mm256_sign_epi8(v, numbers));
      else
        pairs = _mm256_maddubs_epi16(numbers, v);
      total[t] = _mm256_add_epi32(total[t], _mm256_madd_epi16(pairs, scale));
    }
  }
}

// The results of one row and kTokens tokens.
template <typename Type, int kTokens>
void Row(const MatmulArgs& args, int64_t row, int64_t token) {
  const int64_t k = args.weight.cols;
  const int64_t blocks = k / 256;
  const auto* w =
      reinterpret_cast<const typename Type::Block*>(args.weight.data) +
      row * blocks;
  Q8_256Row x[kTokens];
  __m256 sum[kTokens];
  for (int t = 0; t < kTokens; ++t) {
    x[t] = ViewQ8_256(args.activations + static_cast<uint64_t>(token + t) *
                                             args.activation_stride,
                      k);
    sum[t] = _mm256_setzero_ps();
  }
  for (int64_t b = 0; b < blocks; ++b) {
    Unpacked block;
    Type::Unpack(w[b], &block);
    __m256i total[kTokens];
    Dot<Type, kTokens>(block, x, b, total);
    for (int t = 0; t < kTokens; ++t) {
      const float d = x[t].scale[b];
      sum[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total[t]),
                               _mm256_set1_ps(block.d * d), sum[t]);
      if constexpr (Type::kExtra == Extra::kMinimum) {
        const __m256i minimums =
            _mm256_madd_epi16(block.offset, LoadSums(x[t].sum16 + 16 * b));
        sum[t] = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(minimums),
                                  _mm256_set1_ps(block.dmin * d), sum[t]);
      }
    }
  }
  for (int t = 0; t < kTokens; ++t)
    args.out[(token + t) * args.out_stride + row] = SumLanes(sum[t]);
}

template <typename Type, int kTokens>
void RowRange(const MatmulArgs& args, int64_t begin, int64_t end,
              int64_t token) {
  for (int64_t row = begin; row < end; ++row)
    Row<Type, kTokens>(args, row, token);
}

template <typename Type>
void Rows(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  const int64_t row_bytes = args.weight.cols / 256 *
                            static_cast<int64_t>(sizeof(typename Type::Block));
  const int64_t fit = kRowChunkBytes / row_bytes;
  const int64_t chunk = fit > 1 ? fit : 1;
  for (int64_t begin = row_begin; begin < row_end; begin += chunk) {
    const int64_t end = begin + chunk < row_end ? begin + chunk : row_end;
    int64_t token = 0;
    for (; token + 8 <= args.tokens; token += 8)
      RowRange<Type, 8>(args, begin, end, token);
    for (; token + 2 <= args.tokens; token += 2)
      RowRange<Type, 2>(args, begin, end, token);
    if (token < args.tokens) RowRange<Type, 1>(args, begin, end, token);
  }
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
