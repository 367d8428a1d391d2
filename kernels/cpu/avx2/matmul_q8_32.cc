// Products with the types of 32-value blocks: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1,
// IQ4_NL, MXFP4.
//
// A block's integer sum is exact (eight lanes of four values); lanes are scaled
// by the weight's times the activation's scale and added block after block,
// then summed by a tree. The order is the same for one token and for many.
// Signed numbers use that vpmaddubsw wants one side unsigned: |w| times x with
// w's sign; its pair sums cannot saturate since |x| <= 127 (2 * 128 * 127 <
// 2^15).

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/activations.h"
#include "kernels/cpu/avx2/lanes.h"
#include "kernels/quant_blocks.h"

namespace coldstream {
namespace {

constexpr int64_t kGroup = 8;  // blocks whose scales are made together
constexpr int64_t kRowChunkBytes = 128 * 1024;

// Sixteen bytes of 4-bit numbers: low halves, then high halves.
__m256i Nibbles(const uint8_t* qs) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(qs));
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(v, 4), v),
                          _mm256_set1_epi8(15));
}

// 16 where the bit of qh is set, 0 elsewhere.
__m256i FifthBits(const uint8_t* qh) {
  int bits;
  __builtin_memcpy(&bits, qh, sizeof(bits));
  const __m256i byte_of_lane = _mm256_setr_epi64x(
      0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit =
      _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201ull));
  const __m256i spread =
      _mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte_of_lane);
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
  return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

__m256i LookUp(const int8_t* table, __m256i index) {
  const __m256i values = _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return _mm256_shuffle_epi8(values, index);
}

// What to do with a type's numbers.
enum class Numbers : uint8_t {
  kSigned,   // as they are
  kOffset,   // stored with kOffset added, so that none is negative
  kMinimum,  // not negative, and a block has a minimum
};

// One struct a type: a block's numbers as 32 bytes in order.
struct Q8_0 {
  using Block = BlockQ8_0;
  static constexpr DType kType = DType::kQ8_0;
  static constexpr Numbers kNumbers = Numbers::kSigned;
  static __m256i Load(const Block& b) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b.qs));
  }
};

struct Q4_0 {
  using Block = BlockQ4_0;
  static constexpr DType kType = DType::kQ4_0;
  static constexpr Numbers kNumbers = Numbers::kOffset;
  static constexpr int kOffset = 8;
  static __m256i Load(const Block& b) { return Nibbles(b.qs); }
};

struct Q4_1 {
  using Block = BlockQ4_1;
  static constexpr DType kType = DType::kQ4_1;
  static constexpr Numbers kNumbers = Numbers::kMinimum;
  static __m256i Load(const Block& b) { return Nibbles(b.qs); }
};

struct Q5_0 {
  using Block = BlockQ5_0;
  static constexpr DType kType = DType::kQ5_0;
  static constexpr Numbers kNumbers = Numbers::kOffset;
  static constexpr int kOffset = 16;
  static __m256i Load(const Block& b) {
    return _mm256_or_si256(Nibbles(b.qs), FifthBits(b.qh));
  }
};

struct Q5_1 {
  using Block = BlockQ5_1;
  static constexpr DType kType = DType::kQ5_1;
  static constexpr Numbers kNumbers = Numbers::kMinimum;
  static __m256i Load(const Block& b) {
    return _mm256_or_si256(Nibbles(b.qs), FifthBits(b.qh));
  }
};

struct IQ4_NL {
  using Block = BlockIQ4_NL;
  static constexpr DType kType = DType::kIQ4_NL;
  static constexpr Numbers kNumbers = Numbers::kSigned;
  static __m256i Load(const Block& b) {
    return LookUp(kIq4Values, Nibbles(b.qs));
  }
};

struct MXFP4 {
  using Block = BlockMXFP4;
  static constexpr DType kType = DType::kMXFP4;
  static constexpr Numbers kNumbers = Numbers::kOffset;
  static constexpr int kOffset = 12;
  static __m256i Load(const Block& b) {
    return _mm256_add_epi8(LookUp(kMxfp4Values, Nibbles(b.qs)),
                           _mm256_set1_epi8(kOffset));
  }
};

// Eight F16 values, one every kStep bytes, as floats.
template <int kStep>
__m256 HalvesAt(const uint8_t* p) {
  const auto at = [p](int i) {
    int16_t bits;
    __builtin_memcpy(&bits, p + i * kStep, sizeof(bits));
    return bits;
  };
  return _mm256_cvtph_ps(
      _mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)));
}

// Scales of eight blocks.
template <typename Type>
__m256 Scales(const typename Type::Block* b) {
  return HalvesAt<sizeof(*b)>(b->d);
}
// 2^(e - 128): the exponent field of a float, or for e < 2 a subnormal.
template <>
__m256 Scales<MXFP4>(const BlockMXFP4* b) {
  const __m256i e = _mm256_setr_epi32(b[0].e, b[1].e, b[2].e, b[3].e, b[4].e,
                                      b[5].e, b[6].e, b[7].e);
  const __m256i normal =
      _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
  return _mm256_castsi256_ps(_mm256_blendv_epi8(
      normal, subnormal, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

// Eight lanes of four products each.
template <typename Type>
__m256i Dot(__m256i w, __m256i magnitude, const int8_t* x) {
  __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  if constexpr (Type::kNumbers == Numbers::kSigned) v = _mm256_sign_epi8(v, w);
  return _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, v),
                           _mm256_set1_epi16(1));
}

// What eight blocks of a row and of a token have in common.
struct Factors {
  alignas(32) float scale[kGroup];     // of the weights times the activations
  alignas(32) int32_t offset[kGroup];  // kOffset times the sum of activations
};

// Scales and minimums of eight blocks of a row.
struct RowFactors {
  __m256 scale;
  __m256 minimum;
};

template <typename Type>
RowFactors FactorsOf(const typename Type::Block* w) {
  if constexpr (Type::kNumbers == Numbers::kMinimum)
    return {Scales<Type>(w), HalvesAt<sizeof(*w)>(w->m)};
  else
    return {Scales<Type>(w), _mm256_setzero_ps()};
}

// Fills `out` for blocks [g, g + n) of the token, and adds the minimums' part
// to `sum`.
template <typename Type>
__m256 Prepare(const RowFactors& w, const Q8_32Row& x, int64_t g, int64_t n,
               __m256 sum, Factors* out) {
  _mm256_store_ps(out->scale,
                  _mm256_mul_ps(w.scale, LoadFirst(x.scale + g, n)));
  if constexpr (Type::kNumbers == Numbers::kOffset) {
    const __m256i sums = _mm256_castps_si256(
        LoadFirst(reinterpret_cast<const float*>(x.sum) + g, n));
    _mm256_store_si256(
        reinterpret_cast<__m256i*>(out->offset),
        _mm256_mullo_epi32(sums, _mm256_set1_epi32(Type::kOffset)));
  }
  if constexpr (Type::kNumbers == Numbers::kMinimum)
    sum = _mm256_fmadd_ps(w.minimum, LoadFirst(x.scaled_sum + g, n), sum);
  return sum;
}

// Adds blocks [g, g + n) of kRows rows to the sums of kTokens tokens. All eight
// blocks of w[r] can be read; past the n-th they count for nothing.
template <typename Type, int kRows, int kTokens>
void AddGroup(const typename Type::Block* const* w, const Q8_32Row* x,
              int64_t g, int64_t n, __m256 (*sum)[kTokens]) {
  Factors factors[kRows][kTokens];
  __m256 acc[kRows][kTokens];  // registers, where *sum would be memory
  for (int r = 0; r < kRows; ++r) {
    const RowFactors row = FactorsOf<Type>(w[r]);
    for (int t = 0; t < kTokens; ++t)
      acc[r][t] = Prepare<Type>(row, x[t], g, n, sum[r][t], &factors[r][t]);
  }
  for (int64_t b = 0; b < n; ++b) {
    for (int r = 0; r < kRows; ++r) {
      const __m256i numbers = Type::Load(w[r][b]);
      const __m256i magnitude = Type::kNumbers == Numbers::kSigned
                                    ? _mm256_abs_epi8(numbers)
                                    : numbers;
      for (int t = 0; t < kTokens; ++t) {
        const Factors& f = factors[r][t];
        __m256i dot = Dot<Type>(numbers, magnitude, x[t].q + 32 * (g + b));
        if constexpr (Type::kNumbers == Numbers::kOffset)
          dot = _mm256_sub_epi32(
              dot, _mm256_zextsi128_si256(_mm_cvtsi32_si128(f.offset[b])));
        acc[r][t] =
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot),
                            _mm256_broadcast_ss(&f.scale[b]), acc[r][t]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int t = 0; t < kTokens; ++t) sum[r][t] = acc[r][t];
}

// The results of kRows rows and kTokens tokens.
template <typename Type, int kRows, int kTokens>
void Block(const MatmulArgs& args, int64_t row, int64_t token) {
  using TypeBlock = typename Type::Block;
  const int64_t k = args.weight.cols;
  const int64_t blocks = k / 32;
  const TypeBlock* w[kRows];
  Q8_32Row x[kTokens];
  __m256 sum[kRows][kTokens];
  for (int r = 0; r < kRows; ++r)
    w[r] = reinterpret_cast<const TypeBlock*>(args.weight.data) +
           (row + r) * blocks;
  for (int t = 0; t < kTokens; ++t) {
    x[t] = ViewQ8_32(args.activations + static_cast<uint64_t>(token + t) *
                                            args.activation_stride,
                     k);
    for (int r = 0; r < kRows; ++r) sum[r][t] = _mm256_setzero_ps();
  }
  int64_t g = 0;
  for (; g + kGroup <= blocks; g += kGroup) {
    AddGroup<Type, kRows, kTokens>(w, x, g, kGroup, sum);
    for (int r = 0; r < kRows; ++r) w[r] += kGroup;
  }
  if (g < blocks) {  // copied, so that eight can be read
    TypeBlock last[kRows][kGroup] = {};
    for (int r = 0; r < kRows; ++r) {
      __builtin_memcpy(last[r], w[r],
                       static_cast<size_t>(blocks - g) * sizeof(TypeBlock));
      w[r] = last[r];
    }
    AddGroup<Type, kRows, kTokens>(w, x, g, blocks - g, sum);
  }
  for (int r = 0; r < kRows; ++r)
    for (int t = 0; t < kTokens; ++t)
      args.out[(token + t) * args.out_stride + row + r] = SumLanes(sum[r][t]);
}

template <typename Type, int kRows, int kTokens>
int64_t RowBlocks(const MatmulArgs& args, int64_t row, int64_t end,
                  int64_t token) {
  for (; row + kRows <= end; row += kRows)
    Block<Type, kRows, kTokens>(args, row, token);
  return row;
}

// Two rows where few tokens leave the sums waiting for one another.
template <typename Type>
void Chunk(const MatmulArgs& args, int64_t begin, int64_t end) {
  int64_t token = 0;
  for (; token + 8 <= args.tokens; token += 8)
    RowBlocks<Type, 1, 8>(args, begin, end, token);
  if (token + 4 <= args.tokens) {
    RowBlocks<Type, 1, 4>(args, begin, end, token);
    token += 4;
  }
  for (; token < args.tokens; ++token) {
    const int64_t row = RowBlocks<Type, 2, 1>(args, begin, end, token);
    RowBlocks<Type, 1, 1>(args, row, end, token);
  }
}

template <typename Type>
void Rows(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  const int64_t row_bytes = args.weight.cols / 32 *
                            static_cast<int64_t>(sizeof(typename Type::Block));
  const int64_t fit = kRowChunkBytes / row_bytes;
  const int64_t chunk = fit > 2 ? fit / 2 * 2 : 2;
  for (int64_t begin = row_begin; begin < row_end; begin += chunk) {
    const int64_t end = begin + chunk;
    Chunk<Type>(args, begin, end < row_end ? end : row_end);
  }
}

template <typename Type>
void Register(Ops* ops) {
  ops->matmul[static_cast<size_t>(Type::kType)].rows = Rows<Type>;
}

}  // namespace

void RegisterAvx2MatmulQ8_32(Ops* ops) {
  Register<Q8_0>(ops);
  Register<Q4_0>(ops);
  Register<Q4_1>(ops);
  Register<Q5_0>(ops);
  Register<Q5_1>(ops);
  Register<IQ4_NL>(ops);
  Register<MXFP4>(ops);
}

}  // namespace coldstream

#endif  // __AVX2__
