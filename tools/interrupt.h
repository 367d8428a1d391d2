// Ctrl-C as a flag that long work looks at, so that it can end in order: text
// so far intact, temporary files removed, exit 130.
//
// The second Ctrl-C kills at once, should the orderly end hang.
#ifndef COLDSTREAM_TOOLS_INTERRUPT_H_
#define COLDSTREAM_TOOLS_INTERRUPT_H_

#include <atomic>

namespace coldstream {

// From now on the first SIGINT or SIGTERM sets the flag returned. The flag is
// one for the process (a signal handler can reach nothing else) and lives until
// its end. Idempotent.
const std::atomic<bool>& CatchInterrupts();

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_INTERRUPT_H_
