#include "runtime/chrome_trace.h"

#include <optional>
#include <span>
#include <utility>

namespace coldstream {

static_assert(ChromeTrace::kMemoryBytes <= uint64_t{2} << 20);

StatusOr<std::unique_ptr<ChromeTrace>> ChromeTrace::Create(
    const std::string& path) {
  ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path, std::nullopt));
  std::unique_ptr<ChromeTrace> trace(new ChromeTrace(std::move(file)));
  return trace;
}

ChromeTrace::ChromeTrace(std::unique_ptr<AtomicFile> file)
    : filling_(std::make_unique<TraceBatch>()),
      writing_(std::make_unique<TraceBatch>()),
      file_(std::move(file)) {
  text_.reserve(kTextBytes);
  format_.AppendHeader(&text_);
}

void ChromeTrace::Span(const TraceSpan& span) { Add(span); }

void ChromeTrace::Count(TraceCounter counter, int64_t at_ns, int64_t value) {
  Add(counter, at_ns, value);
}

template <typename... Event>
void ChromeTrace::Add(const Event&... event) {
  while (true) {
    uint64_t full = 0;
    {
      const std::lock_guard lock(filling_mutex_);
      if (finished_ || filling_->Add(event...)) return;
      full = batch_;
    }
    WriteBatch(full);
  }
}

// Does nothing where another thread has written that batch already.
void ChromeTrace::WriteBatch(uint64_t batch) {
  const std::lock_guard lock(writing_mutex_);
  {
    const std::lock_guard filling_lock(filling_mutex_);
    if (batch_ != batch) return;
    std::swap(filling_, writing_);
    ++batch_;
  }
  WriteEvents();
}

void ChromeTrace::WriteEvents() {
  if (status_.ok()) {
    writing_->Sort();
    for (const TraceEvent& event : writing_->events()) {
      if (text_.size() + ChromeTraceText::kMaxEventBytes > kTextBytes)
        WriteText();
      format_.AppendEvent(event, writing_->NameOf(event), &text_);
    }
  }
  writing_->Clear();
}

void ChromeTrace::WriteText() {
  if (status_.ok()) status_ = file_->Append(std::as_bytes(std::span(text_)));
  text_.clear();
}

Status ChromeTrace::Finish() {
  const std::lock_guard lock(writing_mutex_);
  if (file_ == nullptr) return status_;
  {
    const std::lock_guard filling_lock(filling_mutex_);
    finished_ = true;
    std::swap(filling_, writing_);
  }
  WriteEvents();
  WriteText();
  format_.AppendFooter(&text_);
  WriteText();
  if (status_.ok()) status_ = file_->Commit();
  file_.reset();
  return status_;
}

}  // namespace coldstream
