#include "tests/simt/fiber.h"

#include <sys/mman.h>

#include <atomic>
#include <boost/context/detail/fcontext.hpp>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)  // g++
#define COLDSTREAM_HAVE_ASAN 1
#elif defined(__has_feature)  // clang
#if __has_feature(address_sanitizer)
#define COLDSTREAM_HAVE_ASAN 1
#endif
#endif
#ifndef COLDSTREAM_HAVE_ASAN
#define COLDSTREAM_HAVE_ASAN 0
#endif

#if COLDSTREAM_HAVE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace coldstream::simt {
namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr size_t kGuardBytes = 4096;
// Frames under AddressSanitizer are several times as large.
constexpr size_t kStackBytes = COLDSTREAM_HAVE_ASAN ? 256 * 1024 : 64 * 1024;

// Stacks start at different offsets from a page: with equal ones the hot ends
// of all stacks would fall into the same few sets of the cache.
size_t NextColour() {
  static std::atomic<size_t> made = 0;
  return made.fetch_add(1, std::memory_order_relaxed) % 61 * 320;
}

void Leave(void** fake_stack, const void* bottom, size_t bytes) {
#if COLDSTREAM_HAVE_ASAN
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#else
  (void)fake_stack, (void)bottom, (void)bytes;
#endif
}

void Arrive(void* fake_stack, const void** left_bottom, size_t* left_bytes) {
#if COLDSTREAM_HAVE_ASAN
  __sanitizer_finish_switch_fiber(fake_stack, left_bottom, left_bytes);
#else
  (void)fake_stack, (void)left_bottom, (void)left_bytes;
#endif
}

// A body never returns, so the guards around the variables of its frames stay
// marked in AddressSanitizer's shadow, and would be found in whatever memory is
// mapped there next.
void ForgetFrames(const void* bottom, size_t bytes) {
#if COLDSTREAM_HAVE_ASAN
  __asan_unpoison_memory_region(bottom, bytes);
#else
  (void)bottom, (void)bytes;
#endif
}

}  // namespace

// What a new fiber does first. The fiber it came from says who it is itself,
// in the word that Switch hands over.
struct Fiber::Entry {
  struct Handover {
    Fiber* from;
    Fiber* to;
  };
  static void Run(transfer_t transfer) {
    const Handover handover = *static_cast<Handover*>(transfer.data);
    handover.from->context_ = transfer.fctx;
    Arrive(nullptr, &handover.from->stack_bottom_,
           &handover.from->stack_bytes_);
    handover.to->body_(handover.to->argument_);
    CheckFailed(__FILE__, __LINE__, "the body of a fiber returned");
  }
};

Fiber::Fiber(void (*body)(void*), void* argument)
    : body_(body), argument_(argument) {
  void* memory =
      mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK(mprotect(memory, kGuardBytes, PROT_NONE) == 0);
  memory_ = static_cast<std::byte*>(memory);
  stack_bottom_ = memory_ + kGuardBytes;
  stack_bytes_ = kStackBytes;
  std::byte* top = memory_ + kGuardBytes + kStackBytes - NextColour();
  context_ = make_fcontext(
      top, static_cast<size_t>(top - memory_) - kGuardBytes, Entry::Run);
}

Fiber::~Fiber() {
  if (memory_ == nullptr) return;
  ForgetFrames(stack_bottom_, stack_bytes_);
  munmap(memory_, kGuardBytes + kStackBytes);
}

void Fiber::Switch(Fiber& from, Fiber& to) {
  Entry::Handover handover = {&from, &to};
  Leave(&from.fake_stack_, to.stack_bottom_, to.stack_bytes_);
  const transfer_t back = jump_fcontext(to.context_, &handover);
  // Here again, perhaps much later, from another fiber.
  Fiber* left = static_cast<Entry::Handover*>(back.data)->from;
  left->context_ = back.fctx;
  Arrive(from.fake_stack_, &left->stack_bottom_, &left->stack_bytes_);
}

}  // namespace coldstream::simt
