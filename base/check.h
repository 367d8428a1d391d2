// CHECK and DCHECK: our own broken invariants, never the outside's mistakes.
//
// A failed CHECK prints the condition with its place and aborts. Anything a
// file, a flag or the machine can cause is a Status instead (base/status.h).
#ifndef COLDSTREAM_BASE_CHECK_H_
#define COLDSTREAM_BASE_CHECK_H_

namespace coldstream {

[[noreturn]] void CheckFailed(const char* file, int line,
                              const char* condition);

}  // namespace coldstream

#define CHECK(condition) \
  ((condition) ? (void)0 \
               : ::coldstream::CheckFailed(__FILE__, __LINE__, #condition))

#ifdef NDEBUG
#define DCHECK(condition) ((void)sizeof(!(condition)))
#else
#define DCHECK(condition) CHECK(condition)
#endif

#endif  // COLDSTREAM_BASE_CHECK_H_
