// Products of several tokens, one function a type: rows [row_begin, row_end)
// for all tokens. Any number of tokens is right, one included; the files
// matmul_q8_*.cc have something faster for one.
#ifndef COLDSTREAM_KERNELS_CPU_AVX2_MATMUL_TILES_H_
#define COLDSTREAM_KERNELS_CPU_AVX2_MATMUL_TILES_H_

#include <cstdint>

#include "kernels/ops.h"

namespace coldstream::avx2 {

using RowsFn = void (*)(const MatmulArgs& args, int64_t row_begin,
                        int64_t row_end);

void TilesQ2_K(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ3_K(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ4_K(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ5_K(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ6_K(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesIQ4_XS(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ4_0(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ4_1(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ5_0(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ5_1(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesQ8_0(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesIQ4_NL(const MatmulArgs&, int64_t row_begin, int64_t row_end);
void TilesMXFP4(const MatmulArgs&, int64_t row_begin, int64_t row_end);

}  // namespace coldstream::avx2

#endif  // COLDSTREAM_KERNELS_CPU_AVX2_MATMUL_TILES_H_
