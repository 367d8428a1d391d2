#include "base/tensor_view.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace coldstream {
namespace {

TEST(TensorView, RowsFollowOneAnotherWithoutPadding) {
  std::vector<std::byte> bytes(3 * 68);
  const TensorView view{DType::kQ8_0, bytes.data(), 3, 64};
  EXPECT_EQ(view.row_bytes(), 68u);
  EXPECT_EQ(view.row(0), bytes.data());
  EXPECT_EQ(view.row(2), bytes.data() + 136);
  EXPECT_FALSE(view.empty());
}

TEST(TensorView, OneWithoutDataIsEmpty) { EXPECT_TRUE(TensorView{}.empty()); }

}  // namespace
}  // namespace coldstream
