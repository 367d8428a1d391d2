// Cuts a run of matrices by rows into units of even size.
#ifndef COLDSTREAM_GRAPHS_UNIT_CUTTER_H_
#define COLDSTREAM_GRAPHS_UNIT_CUTTER_H_

#include <cstdint>
#include <span>
#include <string>

#include "graphs/weight_map.h"
#include "io/checkpoint.h"

namespace coldstream {

struct Matrix {
  MatrixKind kind = MatrixKind::kQ;
  int64_t layer = 0;
  const TensorInfo* tensor = nullptr;
};

// Appends units "NAME", or "NAME.0", "NAME.1", ... where there are several, to
// map->units and map->matrices. They hold the rows of `matrices` in order; all
// but the last end at a multiple of 64 rows (whole tiles of every kernel) or at
// a matrix's end, at or just past an even share of at most `unit_bytes`.
void CutIntoUnits(const std::string& name, std::span<const Matrix> matrices,
                  uint64_t unit_bytes, WeightMap* map);

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_UNIT_CUTTER_H_
