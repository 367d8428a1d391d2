// Runs something on a thread of its own that the kernel refuses things to, as a
// container or an unprivileged account would have it. The threads that it
// starts are refused the same; the rest of the process is not touched.
#ifndef COLDSTREAM_TESTS_SUPPORT_RESTRICTED_THREAD_H_
#define COLDSTREAM_TESTS_SUPPORT_RESTRICTED_THREAD_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace coldstream {

// The syscalls fail with `error` (seccomp filter under no_new_privs).
void RunWithSyscallsRefused(const std::vector<int>& syscalls, int error,
                            const std::function<void()>& body);

// As uid 65534 with that memlock limit (the limit itself holds for the whole
// process, until the end of the body). False, without running, if not root.
bool RunAsNobodyWithMemlock(uint64_t limit_bytes,
                            const std::function<void()>& body);

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_RESTRICTED_THREAD_H_
