#include "tests/support/restricted_thread.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

#include "base/check.h"

namespace coldstream {
namespace {

// The numbers tested for are the same on every architecture.
void RefuseSyscalls(const std::vector<int>& syscalls, int error) {
  std::vector<sock_filter> program;
  program.push_back(
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (int number : syscalls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                               static_cast<uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(
        BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()),
                          program.data()};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0);
}

}  // namespace

void RunWithSyscallsRefused(const std::vector<int>& syscalls, int error,
                            const std::function<void()>& body) {
  std::thread thread([&] {
    RefuseSyscalls(syscalls, error);
    body();
  });
  thread.join();
}

bool RunAsNobodyWithMemlock(uint64_t limit_bytes,
                            const std::function<void()>& body) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) return false;
  rlimit before{};
  CHECK(getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  const rlimit lowered{limit_bytes, before.rlim_max};
  CHECK(setrlimit(RLIMIT_MEMLOCK, &lowered) == 0);
  std::thread thread([&] {
    // The bare syscall changes this thread only; glibc's call changes all.
    CHECK(syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0);
    body();
  });
  thread.join();
  CHECK(setrlimit(RLIMIT_MEMLOCK, &before) == 0);
  return true;
}

}  // namespace coldstream
