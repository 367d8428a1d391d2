// The engines that C callers have opened, by number.
//
// A number is never used twice, so a closed one is known to be. Find hands out
// shared ownership: an engine that is closed while another thread is in a call
// on it goes when that call has ended.
// Thread-safety: all methods from any thread.
#ifndef COLDSTREAM_RUNTIME_C_HANDLES_H_
#define COLDSTREAM_RUNTIME_C_HANDLES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine.h"

namespace coldstream {

struct OpenEngine {
  std::vector<std::string> warnings;
  std::unique_ptr<Engine> engine;
};

class CHandles {
 public:
  static CHandles& Instance() {
    // Never destroyed: handles may be used while the program ends.
    static auto* const handles = new CHandles;
    return *handles;
  }

  uint64_t Add(std::shared_ptr<OpenEngine> engine) {
    const std::lock_guard lock(mutex_);
    engines_.emplace(++last_, std::move(engine));
    return last_;
  }
  // Null if there is none.
  std::shared_ptr<OpenEngine> Find(uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = engines_.find(id);
    return found == engines_.end() ? nullptr : found->second;
  }
  std::shared_ptr<OpenEngine> Remove(uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = engines_.find(id);
    if (found == engines_.end()) return nullptr;
    auto engine = std::move(found->second);
    engines_.erase(found);
    return engine;
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<OpenEngine>> engines_;
  uint64_t last_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_C_HANDLES_H_
