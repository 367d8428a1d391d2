// Products with the types of 32-value blocks, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1,
// IQ4_NL and MXFP4, of one token; several go over tiles of rows
// (matmul_tiles_32.cc).
//
// A block's integer sum is exact. Eight blocks' sums lie in the lanes of a
// vector, where they are scaled by the weight's times the activation's scale
// and added to the eight blocks before; a tree adds the lanes. The order is the
// same for one token and for many. Signed numbers use that vpmaddubsw wants one
// side unsigned: |w| times x with w's sign; its pair sums cannot saturate since
// |x| <= 127 (2 * 128 * 127 < 2^15).

#if defined(__AVX2__)

#include "kernels/cpu/avx2/register.h"
//
#include "kernels/activations.h"
#include "kernels/cpu/avx2/lanes.h"
#include "kernels/cpu/avx2/matmul_tiles.h"
#include "kernels/quant_blocks.h"

namespace coldstream {
namespace {

constexpr int64_t kGroup = 8;  // blocks, one in each lane

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
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ8_0;
  static constexpr Numbers kNumbers = Numbers::kSigned;
  static __m256i Load(const Block& b) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b.qs));
  }
};

struct Q4_0 {
  using Block = BlockQ4_0;
  static constexpr DType kType = DType::kQ4_0;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ4_0;
  static constexpr Numbers kNumbers = Numbers::kOffset;
  static constexpr int kOffset = 8;
  static __m256i Load(const Block& b) { return Nibbles(b.qs); }
};

struct Q4_1 {
  using Block = BlockQ4_1;
  static constexpr DType kType = DType::kQ4_1;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ4_1;
  static constexpr Numbers kNumbers = Numbers::kMinimum;
  static __m256i Load(const Block& b) { return Nibbles(b.qs); }
};

struct Q5_0 {
  using Block = BlockQ5_0;
  static constexpr DType kType = DType::kQ5_0;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ5_0;
  static constexpr Numbers kNumbers = Numbers::kOffset;
  static constexpr int kOffset = 16;
  static __m256i Load(const Block& b) {
    return _mm256_or_si256(Nibbles(b.qs), FifthBits(b.qh));
  }
};

struct Q5_1 {
  using Block = BlockQ5_1;
  static constexpr DType kType = DType::kQ5_1;
  static constexpr avx2::RowsFn kTiles = avx2::TilesQ5_1;
  static constexpr Numbers kNumbers = Numbers::kMinimum;
  static __m256i Load(const Block& b) {
    return _mm256_or_si256(Nibbles(b.qs), FifthBits(b.qh));
  }
};

struct IQ4_NL {
  using Block = BlockIQ4_NL;
  static constexpr DType kType = DType::kIQ4_NL;
  static constexpr avx2::RowsFn kTiles = avx2::TilesIQ4_NL;
  static constexpr Numbers kNumbers = Numbers::kSigned;
  static __m256i Load(const Block& b) {
    return LookUp(kIq4Values, Nibbles(b.qs));
  }
};

struct MXFP4 {
  using Block = BlockMXFP4;
  static constexpr DType kType = DType::kMXFP4;
  static constexpr avx2::RowsFn kTiles = avx2::TilesMXFP4;
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

// Adds the products of blocks [b, b + n), at most eight, to lanes 0 .. n - 1 of
// `sum`. All eight of w can be read; past the n-th they count for nothing.
template <typename Type>
[[gnu::always_inline]] inline __m256 AddBlocks(const typename Type::Block* w,
                                               const Q8_32Row& x, int64_t b,
                                               int64_t n, __m256 sum) {
  __m256i each[kGroup];
  for (int64_t i = n; i < kGroup; ++i) each[i] = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; ++i) {
    const __m256i numbers = Type::Load(w[i]);
    const __m256i magnitude =
        Type::kNumbers == Numbers::kSigned ? _mm256_abs_epi8(numbers) : numbers;
    each[i] = Dot<Type>(numbers, magnitude, x.q + 32 * (b + i));
  }
  __m256i total = SumEach(each);
  __m256 added = sum;
  if constexpr (Type::kNumbers == Numbers::kOffset) {
    const __m256i sums = _mm256_castps_si256(
        LoadFirst(reinterpret_cast<const float*>(x.sum) + b, n));
    total = _mm256_sub_epi32(
        total, _mm256_mullo_epi32(sums, _mm256_set1_epi32(Type::kOffset)));
  }
  if constexpr (Type::kNumbers == Numbers::kMinimum)
    added = _mm256_fmadd_ps(HalvesAt<sizeof(*w)>(w->m),
                            LoadFirst(x.scaled_sum + b, n), added);
  added = _mm256_fmadd_ps(
      _mm256_cvtepi32_ps(total),
      _mm256_mul_ps(Scales<Type>(w), LoadFirst(x.scale + b, n)), added);
  return n == kGroup ? added : FirstOf(n, added, sum);
}

template <typename Type>
void OneToken(const MatmulArgs& args, int64_t row_begin, int64_t row_end) {
  using Block = typename Type::Block;
  const int64_t k = args.weight.cols;
  const int64_t blocks = k / 32;
  const Q8_32Row x = ViewQ8_32(args.activations, k);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const auto* w =
        reinterpret_cast<const Block*>(args.weight.data) + row * blocks;
    __m256 sum = _mm256_setzero_ps();
    int64_t b = 0;
    for (; b + kGroup <= blocks; b += kGroup)
      sum = AddBlocks<Type>(w + b, x, b, kGroup, sum);
    if (b < blocks) {  // copied, so that eight can be read
      Block last[kGroup] = {};
      __builtin_memcpy(last, w + b,
                       static_cast<size_t>(blocks - b) * sizeof(Block));
      sum = AddBlocks<Type>(last, x, b, blocks - b, sum);
    }
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
