#include "tools/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace coldstream {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kUsualColumns = 80;
// To the start of the line, and (ECMA-48) nothing to the right of the cursor.
constexpr std::string_view kStart = "\r";
constexpr std::string_view kEraseToEnd = "\x1b[K";

size_t Columns(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kUsualColumns;
  return size.ws_col;
}

// One write, so that the terminal never shows half of it. What it does not take
// is given up: the next line is a fifth of a second away.
void Write(int descriptor, const std::string& text) {
  while (write(descriptor, text.data(), text.size()) < 0 && errno == EINTR) {
  }
}

}  // namespace

bool CanShowStatus(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb" && isatty(descriptor) == 1;
}

StatusLine::StatusLine(const Options& options)
    : options_(options),
      enabled_(CanShowStatus(options.descriptor)),
      created_(Clock::now()),
      meter_(options.units_per_pass, options.disk_ceiling) {
  if (enabled_) thread_ = std::thread([this] { Run(); });
}

StatusLine::~StatusLine() {
  if (!enabled_) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

double StatusLine::Now() const {
  return std::chrono::duration<double>(Clock::now() - created_).count();
}

void StatusLine::Begin(const StatusWork& work) {
  if (!enabled_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  meter_.Begin(work, options_.stats(), Now());
  active_ = true;
}

void StatusLine::Hide() {
  if (!enabled_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  active_ = false;
  Clear();
}

void StatusLine::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  const Clock::time_point first = created_ + options_.delay;
  changed_.wait_until(lock, first, [this] { return stop_; });
  while (!stop_) {
    if (active_) Draw();
    changed_.wait_for(lock, options_.interval, [this] { return stop_; });
  }
  Clear();
}

void StatusLine::Draw() {
  // Not the last column: some terminals begin a new line after it.
  const size_t columns = Columns(options_.descriptor) - 1;
  std::string text(kStart);
  text += meter_.Line(options_.stats(), Now(), columns);
  text += kEraseToEnd;
  Write(options_.descriptor, text);
  shown_ = true;
}

void StatusLine::Clear() {
  if (!shown_) return;
  Write(options_.descriptor, std::string(kStart) + std::string(kEraseToEnd));
  shown_ = false;
}

}  // namespace coldstream
