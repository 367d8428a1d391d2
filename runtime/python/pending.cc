#include "runtime/python/pending.h"

#include <chrono>
#include <utility>

namespace coldstream {

RequestCallbacks Pending::CallbacksFor(
    const std::shared_ptr<Pending>& pending) {
  return {.on_text =
              [pending](std::string_view text) {
                pending->OnText(text);
                return true;
              },
          .on_done =
              [pending](RequestResult result) {
                pending->OnDone(std::move(result));
              }};
}

bool Pending::Wait(double seconds, bool for_text) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
    return result_.has_value() || (for_text && !text_.empty());
  });
}

std::string Pending::TakeText() {
  const std::lock_guard lock(mutex_);
  return std::exchange(text_, {});
}

std::optional<RequestResult> Pending::result() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

RequestId Pending::id() const {
  const std::lock_guard lock(mutex_);
  return id_;
}

void Pending::set_id(RequestId id) {
  const std::lock_guard lock(mutex_);
  id_ = id;
}

void Pending::OnText(std::string_view text) {
  {
    const std::lock_guard lock(mutex_);
    text_ += text;
  }
  changed_.notify_all();
}

void Pending::OnDone(RequestResult result) {
  {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
  }
  changed_.notify_all();
}

}  // namespace coldstream
