// Runs a test's body where a folder is a disk of a few pages, in a child
// process with a mount namespace of its own.
//
//   const SmallDiskResult result = RunOnSmallDisk(dir.path(), 64 << 10, [&] {
//     return absl::IsResourceExhausted(Write(dir.Path("x")));
//   });
#ifndef COLDSTREAM_TESTS_SUPPORT_SMALL_DISK_H_
#define COLDSTREAM_TESTS_SUPPORT_SMALL_DISK_H_

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/check.h"

namespace coldstream {

enum class SmallDiskResult { kHeld, kFailed, kNotPossible };

// A user and a mount namespace in which we are root: for the unprivileged.
inline bool EnterUserNamespace() {
  const auto write = [](const char* path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    return file.flush().good();
  };
  const std::string user = std::to_string(geteuid());
  const std::string group = std::to_string(getegid());
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
         write("/proc/self/setgroups", "deny") &&
         write("/proc/self/uid_map", "0 " + user + " 1") &&
         write("/proc/self/gid_map", "0 " + group + " 1");
}

// kHeld if `body` returned true in the child; kNotPossible where the system
// does not let us mount (unprivileged, or a strict container).
template <typename Body>
SmallDiskResult RunOnSmallDisk(const std::string& folder, uint64_t bytes,
                               const Body& body) {
  constexpr int kNotMounted = 77;
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 && !EnterUserNamespace()) _exit(kNotMounted);
    (void)mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    const std::string options = "size=" + std::to_string(bytes);
    if (mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) != 0)
      _exit(kNotMounted);
    const bool held = body();
    (void)fflush(nullptr);  // what failed expectations said
    _exit(held ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotMounted)
    return SmallDiskResult::kNotPossible;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0
             ? SmallDiskResult::kHeld
             : SmallDiskResult::kFailed;
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_SMALL_DISK_H_
