#include "tools/interrupt.h"

#include <csignal>

namespace coldstream {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnSignal(int) { g_interrupted.store(true); }

}  // namespace

const std::atomic<bool>& CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  // RESETHAND: the next one finds the default, which kills. No RESTART: a
  // blocking read of the terminal returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return g_interrupted;
}

}  // namespace coldstream
