#include "tools/status_meter.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr double kReadWindow = 1.0;
// Below this the disk does nothing worth a figure (rows of the embedding).
constexpr double kLeastReadRate = 5e6;

std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60,
                         whole % 60);
}

// Adds a figure where there is one and room for it.
void Append(std::string_view figure, size_t columns, std::string* line) {
  if (figure.empty()) return;
  const std::string_view gap = line->empty() ? "" : "  ";
  if (line->size() + gap.size() + figure.size() > columns) return;
  *line += gap;
  *line += figure;
}

}  // namespace

int64_t StatusMeter::PromptPasses() const {
  return (work_.prompt_tokens + work_.pass_tokens - 1) / work_.pass_tokens;
}

void StatusMeter::Begin(const StatusWork& work, const EngineStats& stats,
                        double now) {
  work_ = work;
  begin_ = stats;
  begin_at_ = now;
  generating_ = false;
  phase_ = {now, 0, PromptPasses(), work.prompt_tokens};
  if (work.prompt_tokens == 0) BeginGeneration(now);
}

void StatusMeter::BeginGeneration(double now) {
  generating_ = true;
  // The first token belongs to the prompt's last pass.
  const int64_t from_prompt = work_.prompt_tokens > 0 ? 1 : 0;
  const int64_t passes =
      work_.generated_tokens < 0 ? -1 : work_.generated_tokens - from_prompt;
  phase_ = {now, PromptPasses() * units_per_pass_, passes, passes};
}

std::string StatusMeter::Progress(int64_t passes, int64_t units) const {
  const std::string label = work_.label.empty() ? "" : work_.label + " ";
  if (!generating_) {
    const double share =
        PassesDone(units) / static_cast<double>(PromptPasses());
    return absl::StrFormat("%sprompt %.0f %% of %d", label, 100 * share,
                           work_.prompt_tokens);
  }
  const int64_t tokens =
      passes - PromptPasses() + (work_.prompt_tokens > 0 ? 1 : 0);
  if (work_.generated_tokens < 0)
    return absl::StrFormat("%sgenerated %d", label, tokens);
  return absl::StrFormat("%sgenerated %d/%d", label, tokens,
                         work_.generated_tokens);
}

double StatusMeter::PassesDone(int64_t units) const {
  return static_cast<double>(units - phase_.begin_units) /
         static_cast<double>(units_per_pass_);
}

std::string StatusMeter::Speed(int64_t units, double now) const {
  const double seconds = now - phase_.begin_at;
  const double passes = PassesDone(units);
  if (seconds <= 0 || passes <= 0) return "";
  const double tokens_per_pass = generating_
                                     ? 1
                                     : static_cast<double>(phase_.tokens) /
                                           static_cast<double>(phase_.passes);
  const double speed = passes * tokens_per_pass / seconds;
  const int digits = speed < 10 ? 2 : speed < 100 ? 1 : 0;
  return absl::StrFormat("%.*f tok/s", digits, speed);
}

std::string StatusMeter::Eta(int64_t units, double now) const {
  const double seconds = now - phase_.begin_at;
  const double done = PassesDone(units);
  const bool open = phase_.passes < 0 || !work_.seconds_after;
  if (open || seconds <= 0 || done <= 0) return "";
  const double left =
      std::max(0.0, static_cast<double>(phase_.passes) - done) * seconds / done;
  const std::string text = Duration(left + *work_.seconds_after);
  // How long the generation takes is not known before it has begun.
  const bool first_token = !generating_ && work_.generated_tokens != 0;
  return first_token ? "first token in " + text : "ETA " + text;
}

std::string StatusMeter::Reads(uint64_t bytes, double now) {
  samples_.push_back({now, bytes});
  while (samples_.size() > 2 && samples_[1].at <= now - kReadWindow)
    samples_.pop_front();
  const Sample& first = samples_.front();
  if (now <= first.at) return "";
  const double rate =
      static_cast<double>(bytes - first.bytes) / (now - first.at);
  if (rate < kLeastReadRate) return "";
  std::string text = absl::StrFormat("%.2f GB/s", rate / 1e9);
  if (disk_ceiling_ && *disk_ceiling_ > 0)
    text += absl::StrFormat(" (%.0f %%)", 100 * rate / *disk_ceiling_);
  return text;
}

std::string StatusMeter::Waits(double stall_seconds, double now) const {
  if (now <= begin_at_) return "";
  const double share = stall_seconds / (now - begin_at_);
  return absl::StrFormat("waits %.0f %%", 100 * std::clamp(share, 0.0, 1.0));
}

std::string StatusMeter::Line(const EngineStats& stats, double now,
                              size_t columns) {
  const int64_t passes = stats.passes - begin_.passes;
  const int64_t units = stats.units - begin_.units;
  if (!generating_ && passes >= PromptPasses() && work_.generated_tokens != 0)
    BeginGeneration(now);
  std::string line = Progress(passes, units);
  if (line.size() > columns) line.resize(columns);
  Append(Speed(units, now), columns, &line);
  Append(Reads(stats.bytes_from_disk, now), columns, &line);
  Append(Waits(stats.stall_seconds - begin_.stall_seconds, now), columns,
         &line);
  Append(Eta(units, now), columns, &line);
  return line;
}

}  // namespace coldstream
