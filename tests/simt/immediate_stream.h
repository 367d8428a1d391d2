// A stream whose copies and kernels are done when the call returns: for tests
// of single kernels, whose device memory is plain host memory.
#ifndef COLDSTREAM_TESTS_SIMT_IMMEDIATE_STREAM_H_
#define COLDSTREAM_TESTS_SIMT_IMMEDIATE_STREAM_H_

#include <cstring>
#include <functional>

#include "base/device.h"
#include "tests/simt/kernel_queue.h"

namespace coldstream::simt {

class ImmediateStream : public Stream, public KernelQueue {
 public:
  Status CopyToDevice(std::byte* to, const std::byte* from,
                      size_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  Status CopyToHost(std::byte* to, const std::byte* from,
                    size_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  Status Record(Event*) override { return absl::OkStatus(); }
  Status Wait(const Event&) override { return absl::OkStatus(); }
  Status Synchronize() override { return absl::OkStatus(); }
  void* native_handle() override { return static_cast<KernelQueue*>(this); }

  void Enqueue(std::function<void()> work) override { work(); }
};

}  // namespace coldstream::simt

#endif  // COLDSTREAM_TESTS_SIMT_IMMEDIATE_STREAM_H_
