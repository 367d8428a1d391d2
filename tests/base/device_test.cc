// The contract every Device keeps. Implementations are added to the list below.

#include "base/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/host_memory.h"
#include "tests/support/deferred_device.h"
#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

struct DeviceFactory {
  std::string name;
  std::function<std::unique_ptr<Device>()> create;  // null: not here
};
void PrintTo(const DeviceFactory& factory, std::ostream* out) {
  *out << factory.name;
}

class DeviceTest : public ::testing::TestWithParam<DeviceFactory> {
 protected:
  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << "no such device here";
  }
  std::unique_ptr<Device> device_ = GetParam().create();
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

TEST_P(DeviceTest, AnEventMayBeRecordedAgainWhileAStreamWaitsForItsFirst) {
  // Streams hand a slot to and fro with two events; a Wait that took a later
  // Record than that of its moment would wait for itself.
  auto slot = *device_->Allocate(100, "slot");
  auto copy = *device_->NewStream();
  auto compute = *device_->NewStream();
  auto ready = *device_->NewEvent();
  auto used = *device_->NewEvent();
  std::vector<std::vector<std::byte>> in, out;
  for (int i = 0; i < 20; ++i) {
    in.emplace_back(100, static_cast<std::byte>(i));
    out.emplace_back(100);
  }
  for (size_t i = 0; i < in.size(); ++i) {
    ASSERT_THAT(copy->Wait(*used), IsOk());
    ASSERT_THAT(copy->CopyToDevice(slot.data(), in[i].data(), 100), IsOk());
    ASSERT_THAT(copy->Record(ready.get()), IsOk());
    ASSERT_THAT(compute->Wait(*ready), IsOk());
    ASSERT_THAT(compute->CopyToHost(out[i].data(), slot.data(), 100), IsOk());
    ASSERT_THAT(compute->Record(used.get()), IsOk());
  }
  ASSERT_THAT(used->Wait(), IsOk());
  EXPECT_EQ(in, out);
}

TEST_P(DeviceTest, EventsTellTheTimeBetweenThem) {
  auto memory = *device_->Allocate(size_t{1} << 20, "test");
  std::vector<std::byte> host(memory.size());
  auto stream = *device_->NewStream();
  auto first = *device_->NewEvent();
  auto second = *device_->NewEvent();
  ASSERT_THAT(stream->Record(first.get()), IsOk());
  ASSERT_THAT(stream->CopyToHost(host.data(), memory.data(), memory.size()),
              IsOk());
  ASSERT_THAT(stream->Record(second.get()), IsOk());
  ASSERT_THAT(stream->Synchronize(), IsOk());
  const auto seconds = second->SecondsSince(*first);
  ASSERT_THAT(seconds, IsOk());
  EXPECT_GT(*seconds, 0);
  const auto itself = first->SecondsSince(*first);
  ASSERT_THAT(itself, IsOk());
  EXPECT_EQ(*itself, 0);
}

TEST_P(DeviceTest, AnEventNeverRecordedHasNoTime) {
  auto stream = *device_->NewStream();
  auto recorded = *device_->NewEvent();
  auto never = *device_->NewEvent();
  ASSERT_THAT(stream->Record(recorded.get()), IsOk());
  ASSERT_THAT(recorded->Wait(), IsOk());
  EXPECT_THAT(recorded->SecondsSince(*never),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(never->SecondsSince(*recorded),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  // An error that was told is over.
  EXPECT_THAT(stream->Record(never.get()), IsOk());
  EXPECT_THAT(stream->Synchronize(), IsOk());
}

TEST_P(DeviceTest, FreeMemoryIsPartOfAll) {
  const auto info = device_->MemoryInfo();
  ASSERT_THAT(info, IsOk());
  EXPECT_GT(info->free, 0u);
  EXPECT_LE(info->free, info->total);
}

TEST_P(DeviceTest, RegisteredHostMemoryCopiesAndCanBeRegisteredAgain) {
  auto host = HostMemory::Allocate(size_t{1} << 16, "host");
  ASSERT_THAT(host, IsOk());
  auto memory = *device_->Allocate(host->size(), "test");
  auto stream = *device_->NewStream();
  for (const std::byte value : {std::byte{1}, std::byte{2}}) {
    std::fill(host->bytes().begin(), host->bytes().end(), value);
    ASSERT_THAT(device_->RegisterHostMemory(host->bytes()), IsOk());
    std::vector<std::byte> out(host->size());
    ASSERT_THAT(stream->CopyToDevice(memory.data(), host->data(), host->size()),
                IsOk());
    ASSERT_THAT(stream->CopyToHost(out.data(), memory.data(), out.size()),
                IsOk());
    ASSERT_THAT(stream->Synchronize(), IsOk());
    EXPECT_EQ(out, std::vector<std::byte>(out.size(), value));
    device_->UnregisterHostMemory(host->bytes());
  }
}

TEST_P(DeviceTest, KernelsHaveAQueueWhereTheyAreNotJustCalled) {
  const auto stream = *device_->NewStream();
  EXPECT_EQ(stream->native_handle() == nullptr,
            device_->kind() == DeviceKind::kCpu);
}

std::vector<DeviceFactory> Factories() {
  std::vector<DeviceFactory> factories = {
      {"Cpu", &CreateCpuDevice}, {"Cuda", [] {
                                    auto device = CreateCudaDevice();
                                    return device.ok() ? *std::move(device)
                                                       : nullptr;
                                  }}};
  for (uint64_t seed = 1; seed <= 20; ++seed)
    factories.push_back({"Deferred" + std::to_string(seed),
                         [seed] { return CreateDeferredDevice({seed}); }});
  return factories;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTest, ::testing::ValuesIn(Factories()),
                         [](const auto& test) { return test.param.name; });

TEST(CudaDeviceTest, ABuildWithoutCudaSaysSo) {
  const auto device = CreateCudaDevice();
  if (device.ok()) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_TRUE(device.status().code() == absl::StatusCode::kUnimplemented ||
              device.status().code() == absl::StatusCode::kUnavailable);
  EXPECT_FALSE(device.status().message().empty());
}

}  // namespace
}  // namespace coldstream
