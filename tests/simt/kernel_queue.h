// What a Stream's native_handle() points to where kernels run under the shim:
// the order in which launches and copies run is the device's business.
#ifndef COLDSTREAM_TESTS_SIMT_KERNEL_QUEUE_H_
#define COLDSTREAM_TESTS_SIMT_KERNEL_QUEUE_H_

#include <functional>

namespace coldstream::simt {

class KernelQueue {
 public:
  virtual ~KernelQueue() = default;
  // Runs `work` after what was enqueued before: now or later.
  virtual void Enqueue(std::function<void()> work) = 0;
};

}  // namespace coldstream::simt

#endif  // COLDSTREAM_TESTS_SIMT_KERNEL_QUEUE_H_
