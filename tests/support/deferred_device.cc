#include "tests/support/deferred_device.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/host_memory.h"
#include "tests/simt/kernel_queue.h"
#include "tests/support/deferred_work.h"

namespace coldstream {
namespace {

class DeferredEvent final : public Event {
 public:
  explicit DeferredEvent(DeferredWork* work) : work_(work) {}
  bool Ready() const override { return work_->Poll(mark_.get()); }
  Status Wait() override { return work_->Finish(mark_.get()); }
  StatusOr<double> SecondsSince(const Event& earlier) const override {
    const auto& from = static_cast<const DeferredEvent&>(earlier);
    return work_->SecondsBetween(from.mark_.get(), mark_.get());
  }

  const std::shared_ptr<const WorkMark>& mark() const { return mark_; }
  void set_mark(std::shared_ptr<const WorkMark> mark) {
    mark_ = std::move(mark);
  }

 private:
  DeferredWork* const work_;
  std::shared_ptr<const WorkMark> mark_;  // the latest Record
};

class DeferredStream final : public Stream, public simt::KernelQueue {
 public:
  // `copied` may be null.
  DeferredStream(DeferredWork* work, CopiedBytes* copied)
      : work_(work), stream_(work->AddStream()), copied_(copied) {}
  Status CopyToDevice(std::byte* to, const std::byte* from,
                      size_t bytes) override {
    if (copied_ != nullptr) copied_->to_device += bytes;
    return work_->Copy(stream_, to, from, bytes);
  }
  Status CopyToHost(std::byte* to, const std::byte* from,
                    size_t bytes) override {
    if (copied_ != nullptr) copied_->to_host += bytes;
    return work_->Copy(stream_, to, from, bytes);
  }
  Status Record(Event* event) override {
    ASSIGN_OR_RETURN(auto mark, work_->Record(stream_));
    static_cast<DeferredEvent*>(event)->set_mark(std::move(mark));
    return absl::OkStatus();
  }
  Status Wait(const Event& event) override {
    return work_->WaitFor(stream_,
                          static_cast<const DeferredEvent&>(event).mark());
  }
  Status Synchronize() override { return work_->Finish(stream_); }
  void* native_handle() override {
    return static_cast<simt::KernelQueue*>(this);
  }

  void Enqueue(std::function<void()> kernel) override {
    work_->Kernel(stream_, std::move(kernel));
  }

 private:
  DeferredWork* const work_;
  const size_t stream_;
  CopiedBytes* const copied_;
};

class DeferredDevice final : public Device {
 public:
  explicit DeferredDevice(const DeferredDeviceOptions& options)
      : options_(options), work_(options.seed, options.faults) {}

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  const char* name() const override { return "deferred"; }
  StatusOr<DeviceMemoryInfo> MemoryInfo() override {
    const std::lock_guard lock(mutex_);
    return DeviceMemoryInfo{options_.memory_bytes - allocated_,
                            options_.memory_bytes};
  }
  StatusOr<DeviceMemory> Allocate(size_t bytes, const char* what) override;
  Status RegisterHostMemory(std::span<std::byte> memory) override;
  void UnregisterHostMemory(std::span<std::byte> memory) override;
  StatusOr<std::unique_ptr<Stream>> NewStream() override {
    return std::make_unique<DeferredStream>(&work_, options_.copied.get());
  }
  StatusOr<std::unique_ptr<Event>> NewEvent() override {
    return std::make_unique<DeferredEvent>(&work_);
  }

 private:
  // What a DeviceMemory owns.
  struct Block {
    DeferredDevice* device;
    std::span<std::byte> bytes;
  };
  static void Free(void* pointer);

  const DeferredDeviceOptions options_;
  DeferredWork work_;
  std::mutex mutex_;  // guards all below
  uint64_t allocated_ = 0;
  int64_t allocations_ = 0;
  uint64_t pinned_ = 0;
  std::map<std::byte*, size_t> registered_;
};

StatusOr<DeviceMemory> DeferredDevice::Allocate(size_t bytes,
                                                const char* what) {
  const std::lock_guard lock(mutex_);
  const bool refused = allocations_++ == options_.faults.refuse_allocation;
  void* data = nullptr;
  // Not aligned_alloc: AddressSanitizer holds it to whole pages, and would see
  // nothing of an access past the last byte.
  if (refused || bytes > options_.memory_bytes - allocated_ ||
      posix_memalign(&data, kPageBytes, bytes) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s: %d bytes refused, %d of %d in use", what, bytes,
                        allocated_, options_.memory_bytes));
  }
  std::memset(data, 0, bytes);
  allocated_ += bytes;
  const std::span<std::byte> span(static_cast<std::byte*>(data), bytes);
  return DeviceMemory(span, {new Block{this, span}, &Free});
}

void DeferredDevice::Free(void* pointer) {
  const std::unique_ptr<Block> block(static_cast<Block*>(pointer));
  // Freed under a queued copy: a Wait or Synchronize is missing.
  CHECK(!block->device->work_.NeedsMemory(block->bytes));
  std::memset(block->bytes.data(), std::to_integer<int>(kPoison),
              block->bytes.size());
  std::free(block->bytes.data());
  const std::lock_guard lock(block->device->mutex_);
  block->device->allocated_ -= block->bytes.size();
}

Status DeferredDevice::RegisterHostMemory(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  if (memory.size() > options_.faults.pinned_bytes - pinned_)
    return absl::ResourceExhaustedError(
        absl::StrFormat("%d bytes not registered: %d of %d are", memory.size(),
                        pinned_, options_.faults.pinned_bytes));
  CHECK(registered_.emplace(memory.data(), memory.size()).second);
  pinned_ += memory.size();
  return absl::OkStatus();
}

void DeferredDevice::UnregisterHostMemory(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  const auto found = registered_.find(memory.data());
  CHECK(found != registered_.end() && found->second == memory.size());
  pinned_ -= memory.size();
  registered_.erase(found);
}

}  // namespace

std::unique_ptr<Device> CreateDeferredDevice(
    const DeferredDeviceOptions& options) {
  return std::make_unique<DeferredDevice>(options);
}

}  // namespace coldstream
