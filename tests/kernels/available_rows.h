// The rows of the ops table that this CPU can run: a kernel test loops over
// them. The scalar row is always there.
#ifndef COLDSTREAM_TESTS_KERNELS_AVAILABLE_ROWS_H_
#define COLDSTREAM_TESTS_KERNELS_AVAILABLE_ROWS_H_

#include <vector>

#include "kernels/ops.h"

namespace coldstream {

inline std::vector<const Ops*> AvailableRows() {
  std::vector<const Ops*> rows;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    StatusOr<const Ops*> row = OpsFor(isa);
    if (row.ok()) rows.push_back(*row);
  }
  return rows;
}

// Relative error of one rounding to float.
inline constexpr double kFloatRounding = 0x1p-24;

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_KERNELS_AVAILABLE_ROWS_H_
