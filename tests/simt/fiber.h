// A stack that can be left and come back to. The one place that knows
// Boost.Context, and that tells AddressSanitizer of each switch.
//
//   Fiber caller;                                // the stack we are on
//   Fiber fiber(body, argument);                 // body(argument) never
//   returns Fiber::Switch(caller, fiber);                // until it switches
//   back
//
// boost::context::detail's jump is used, not boost::context::fiber: that one
// unwinds a fiber that is dropped in mid-run by an exception, and fibers in the
// pool are always in mid-run. A switch costs a dozen instructions, no system
// call. Thread-safety: fibers that switch to one another share a thread.
#ifndef COLDSTREAM_TESTS_SIMT_FIBER_H_
#define COLDSTREAM_TESTS_SIMT_FIBER_H_

#include <cstddef>

namespace coldstream::simt {

class Fiber {
 public:
  // The stack of the caller, whatever it is.
  Fiber() = default;
  // A stack of its own, on which the first switch calls body(argument). The
  // body ends by switching away for good. CHECKs that there is memory.
  Fiber(void (*body)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves `from`, which must be the fiber that is running, for `to`. Returns
  // when somebody switches to `from`.
  static void Switch(Fiber& from, Fiber& to);

 private:
  struct Entry;

  void* context_ = nullptr;  // where it was left
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::byte* memory_ = nullptr;  // guard page and stack
  // For AddressSanitizer: the stack's bounds, and its fake frames while away.
  const void* stack_bottom_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace coldstream::simt

#endif  // COLDSTREAM_TESTS_SIMT_FIBER_H_
