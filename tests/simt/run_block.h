// For tests of the shim: one block, or a few, of a lambda.
#ifndef COLDSTREAM_TESTS_SIMT_RUN_BLOCK_H_
#define COLDSTREAM_TESTS_SIMT_RUN_BLOCK_H_

#include "absl/functional/function_ref.h"
#include "tests/simt/block.h"
#include "tests/simt/lane_order.h"

namespace coldstream::simt {

inline void RunBlock(dim3 block, absl::FunctionRef<void()> thread,
                     dim3 grid = 1) {
  RunGrid({.kernel = "TestKernel", .grid = grid, .block = block}, thread);
}

}  // namespace coldstream::simt

#endif  // COLDSTREAM_TESTS_SIMT_RUN_BLOCK_H_
