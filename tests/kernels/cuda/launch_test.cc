#include "kernels/cuda/launch.cuh"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simt/immediate_stream.h"

namespace coldstream::cuda {
namespace {

// Keeps its work until Drain.
class LateStream : public simt::ImmediateStream {
 public:
  void Enqueue(std::function<void()> work) override {
    work_.push_back(std::move(work));
  }
  void Drain() {
    for (const std::function<void()>& work : work_) work();
    work_.clear();
  }

 private:
  std::vector<std::function<void()>> work_;
};

__global__ void StoreKernel(int64_t value, int64_t* out) {
  out[blockIdx.x] = value + threadIdx.x;
}

__global__ void StuckKernel(int) {
  if (threadIdx.x == 0) __syncwarp();
  if (threadIdx.x > 0) __syncthreads();
}

TEST(CudaLaunchTest, ArgumentsAreThoseOfTheCall) {
  LateStream stream;
  std::vector<int64_t> out(2);
  int value = 7;  // converted to the kernel's type
  ASSERT_TRUE(Launch<StoreKernel>(2, 1, 0, &stream, value, out.data()).ok());
  value = 8;
  EXPECT_EQ(out[0], 0);
  stream.Drain();
  EXPECT_EQ(out, (std::vector<int64_t>{7, 7}));
}

TEST(CudaLaunchTest, KernelsOfAStreamRunInOrder) {
  LateStream stream;
  std::vector<int64_t> out(1);
  ASSERT_TRUE(Launch<StoreKernel>(1, 1, 0, &stream, 1, out.data()).ok());
  ASSERT_TRUE(Launch<StoreKernel>(1, 1, 0, &stream, 2, out.data()).ok());
  stream.Drain();
  EXPECT_EQ(out[0], 2);
}

TEST(CudaLaunchTest, BlocksCoverTheItems) {
  EXPECT_EQ(Blocks(0, 256), 0u);
  EXPECT_EQ(Blocks(256, 256), 1u);
  EXPECT_EQ(Blocks(257, 256), 2u);
  EXPECT_EQ(GridRows(70000), 65535u);
}

TEST(CudaLaunchDeathTest, AWrongKernelIsNamed) {
  simt::ImmediateStream stream;
  EXPECT_DEATH((void)Launch<StuckKernel>(1, 32, 0, &stream, 1),
               "kernel StuckKernel, block");
}

}  // namespace
}  // namespace coldstream::cuda
