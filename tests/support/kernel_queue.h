// What a stream of a test device is to a kernel launch: a queue.
//
// Stream::native_handle() of a test device is a KernelQueue*, where that of the
// CUDA device is a cudaStream_t. A launch under the SIMT shim hands its grid to
// the queue; the device runs it when the stream's order allows.
#ifndef COLDSTREAM_TESTS_SUPPORT_KERNEL_QUEUE_H_
#define COLDSTREAM_TESTS_SUPPORT_KERNEL_QUEUE_H_

#include <functional>

namespace coldstream {

class KernelQueue {
 public:
  virtual ~KernelQueue() = default;
  virtual void Enqueue(std::function<void()> kernel) = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_KERNEL_QUEUE_H_
