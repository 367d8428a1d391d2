// A request that Python waits for: its text as it comes, then its result.
//
// The engine's thread fills it and never touches the interpreter; Python looks
// in, with the interpreter's lock given up, for a while at a time, so that
// signals are seen.
// Thread-safety: all methods from any thread.
#ifndef COLDSTREAM_RUNTIME_PYTHON_PENDING_H_
#define COLDSTREAM_RUNTIME_PYTHON_PENDING_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/request.h"

namespace coldstream {

class Pending {
 public:
  // For Engine::Submit. The engine may outlive or be outlived by the Pending.
  static RequestCallbacks CallbacksFor(const std::shared_ptr<Pending>& pending);

  // Waits until it has ended, or, with `for_text`, there is text. False after
  // `seconds`.
  bool Wait(double seconds, bool for_text);
  // The text that has come since the last call.
  std::string TakeText();
  // Nothing before it has ended.
  std::optional<RequestResult> result() const;
  // As Submit gave it; 0 before.
  RequestId id() const;
  void set_id(RequestId id);

 private:
  void OnText(std::string_view text);
  void OnDone(RequestResult result);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::optional<RequestResult> result_;
  RequestId id_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PYTHON_PENDING_H_
