// The contract every Device keeps. Implementations are added to the list below.

#include "base/device.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace coldstream {
namespace {

using DeviceFactory = std::function<std::unique_ptr<Device>()>;

class DeviceTest : public ::testing::TestWithParam<DeviceFactory> {
 protected:
  std::unique_ptr<Device> device_ = GetParam()();
};

TEST_P(DeviceTest, MemoryIsZeroedAndPageAligned) {
  for (size_t bytes : {size_t{1}, size_t{4096}, size_t{5} << 20}) {
    auto memory = device_->Allocate(bytes, "test");
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(memory->size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 4096, 0u);
    std::vector<std::byte> host(bytes, std::byte{1});
    auto stream = *device_->NewStream();
    ASSERT_TRUE(stream->CopyToHost(host.data(), memory->data(), bytes).ok());
    ASSERT_TRUE(stream->Synchronize().ok());
    for (std::byte byte : host) ASSERT_EQ(byte, std::byte{0});
  }
}

TEST_P(DeviceTest, WhatIsCopiedInComesBackAfterItsEvent) {
  auto memory = device_->Allocate(1000, "test");
  ASSERT_TRUE(memory.ok());
  auto copy = *device_->NewStream();
  auto compute = *device_->NewStream();
  auto ready = *device_->NewEvent();
  EXPECT_TRUE(ready->Ready());
  std::vector<std::byte> in(1000), out(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i);
  ASSERT_TRUE(copy->CopyToDevice(memory->data(), in.data(), in.size()).ok());
  ASSERT_TRUE(copy->Record(ready.get()).ok());
  ASSERT_TRUE(compute->Wait(*ready).ok());
  ASSERT_TRUE(compute->CopyToHost(out.data(), memory->data(), out.size()).ok());
  ASSERT_TRUE(compute->Synchronize().ok());
  EXPECT_TRUE(ready->Ready());
  EXPECT_TRUE(ready->Wait().ok());
  EXPECT_EQ(in, out);
}

TEST_P(DeviceTest, AnAbsurdSizeIsAStatus) {
  const auto memory = device_->Allocate(size_t{1} << 60, "the impossible");
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(memory.status().message()).find("the impossible"),
            std::string::npos);
}

TEST_P(DeviceTest, MovedMemoryHasOneOwner) {
  auto memory = device_->Allocate(4096, "test");
  ASSERT_TRUE(memory.ok());
  std::byte* const data = memory->data();
  DeviceMemory moved = *std::move(memory);
  EXPECT_EQ(moved.data(), data);
  moved = DeviceMemory();
  EXPECT_EQ(moved.data(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTest,
                         ::testing::Values(DeviceFactory(&CreateCpuDevice)));

TEST(CudaDeviceTest, ABuildWithoutCudaSaysSo) {
  const auto device = CreateCudaDevice();
  if (device.ok()) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_TRUE(device.status().code() == absl::StatusCode::kUnimplemented ||
              device.status().code() == absl::StatusCode::kUnavailable);
  EXPECT_FALSE(device.status().message().empty());
}

}  // namespace
}  // namespace coldstream
