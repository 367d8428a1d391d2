#include "runtime/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "kernels/best_logits.h"

namespace coldstream {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Status OutOfRange(const char* name, const char* expected, double got) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: expected %s, got %g", name, expected, got));
}

bool IsFraction(double value) { return value >= 0 && value <= 1; }

uint64_t SplitMix64(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Status EveryTokenRuledOut() {
  return absl::InvalidArgumentError(
      "logits are not finite: every token has minus infinity");
}

// NaN and plus infinity come from a broken pass; minus infinity is a mask.
Status CheckLogits(std::span<const float> logits) {
  if (logits.empty()) return absl::InvalidArgumentError("no logits");
  bool any = false;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (std::isfinite(logits[id])) {
      any = true;
    } else if (std::isnan(logits[id]) || logits[id] > 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "logits are not finite: token %d has %f", id, logits[id]));
    }
  }
  if (!any) return EveryTokenRuledOut();
  return absl::OkStatus();
}

}  // namespace

StatusOr<Sampler> Sampler::Create(const SamplingOptions& options) {
  // Written so that NaN fails every test.
  if (!(options.temperature >= 0 && options.temperature < kInfinity))
    return OutOfRange("temperature", "a finite number >= 0",
                      options.temperature);
  if (options.top_k < 0)
    return OutOfRange("top_k", "0 (all) or more",
                      static_cast<double>(options.top_k));
  if (!IsFraction(options.top_p))
    return OutOfRange("top_p", "0 to 1", options.top_p);
  if (!IsFraction(options.min_p))
    return OutOfRange("min_p", "0 to 1", options.min_p);
  // Bounded so that no finite logit leaves the range of a double.
  if (!(options.repeat_penalty >= 1e-3 && options.repeat_penalty <= 1e3))
    return OutOfRange("repeat_penalty", "0.001 to 1000",
                      options.repeat_penalty);
  if (options.repeat_last_n < -1)
    return OutOfRange("repeat_last_n", "-1 (all), 0 (off) or more",
                      static_cast<double>(options.repeat_last_n));
  return Sampler(options);
}

Sampler::Sampler(const SamplingOptions& options) : options_(options) {
  uint64_t seeding = options.seed;
  for (uint64_t& word : state_) word = SplitMix64(&seeding);
}

void Sampler::Reserve(int64_t vocab) {
  CHECK(vocab >= 0);
  if (options_.temperature == 0) return;  // arg-max needs no list
  const int64_t keep =
      options_.top_k == 0 ? vocab : std::min(options_.top_k, vocab);
  candidates_.reserve(static_cast<size_t>(keep));
}

void Sampler::Accept(TokenId token) {
  if (!penalises()) return;
  ++repetitions_[token];
  if (options_.repeat_last_n < 0) return;
  window_.push_back(token);
  if (static_cast<int64_t>(window_.size()) <= options_.repeat_last_n) return;
  const auto oldest = repetitions_.find(window_.front());
  if (--oldest->second == 0) repetitions_.erase(oldest);
  window_.pop_front();
}

void Sampler::CollectCandidates(std::span<const float> logits, int64_t keep) {
  candidates_.clear();
  // Where all are kept there is no worst to look for.
  const auto kept = static_cast<size_t>(keep);
  const size_t limit = kept < logits.size() ? kept : kept + 1;
  // Ids rise in both sequences: a merge instead of a look-up per id.
  auto repeated = repetitions_.lower_bound(0);
  for (size_t i = 0; i < logits.size(); ++i) {
    Candidate candidate{logits[i], static_cast<TokenId>(i)};
    if (repeated != repetitions_.end() && repeated->first == candidate.id) {
      ++repeated;
      if (candidate.logit > 0) {
        candidate.logit /= options_.repeat_penalty;
      } else {
        candidate.logit *= options_.repeat_penalty;
      }
    }
    if (candidate.logit == -kInfinity) continue;
    KeepBest(candidate, limit, &candidates_);
  }
}

StatusOr<TokenId> Sampler::Sample(std::span<const float> logits,
                                  int64_t allowed_vocab) {
  const int64_t vocab = std::clamp<int64_t>(
      allowed_vocab, 0, static_cast<int64_t>(logits.size()));
  logits = logits.first(static_cast<size_t>(vocab));
  RETURN_IF_ERROR(CheckLogits(logits));
  const bool all = options_.top_k == 0;
  CollectCandidates(
      logits, greedy() ? 1 : (all ? vocab : std::min(options_.top_k, vocab)));
  return Choose();
}

// The repetition penalty may lift a token from any place.
int64_t Sampler::choices() const {
  if (penalises()) return 0;
  if (greedy()) return 1;
  return options_.top_k <= kMostChoices ? options_.top_k : 0;
}

StatusOr<TokenId> Sampler::SampleRow(const LogitRow& row,
                                     int64_t allowed_vocab) {
  if (row.best.empty()) return Sample(row.logits, allowed_vocab);
  CHECK(choices() > 0 && choices() <= std::ssize(row.best));
  candidates_.clear();
  for (const LogitChoice& choice :
       row.best.first(static_cast<size_t>(choices())))
    if (choice.id >= 0) candidates_.push_back({choice.logit, choice.id});
  if (candidates_.empty()) return EveryTokenRuledOut();
  return Choose();
}

TokenId Sampler::Choose() {
  if (candidates_.size() == 1) return candidates_.front().id;
  std::sort(candidates_.begin(), candidates_.end(), BetterChoice());
  return Draw();
}

// candidates_: sorted, best first.
TokenId Sampler::Draw() {
  const double best = candidates_.front().logit;
  const auto weight = [&](const Candidate& candidate, double temperature) {
    return std::exp((candidate.logit - best) / temperature);
  };
  if (options_.top_p < 1) {
    double total = 0;
    for (const Candidate& candidate : candidates_)
      total += weight(candidate, 1);
    double sum = 0;
    size_t kept = 0;
    while (kept < candidates_.size()) {
      sum += weight(candidates_[kept++], 1);
      if (sum >= options_.top_p * total) break;
    }
    candidates_.resize(kept, candidates_.front());
  }
  if (options_.min_p > 0) {
    const double least = best + std::log(options_.min_p);
    const auto worse = std::find_if(
        candidates_.begin(), candidates_.end(),
        [&](const Candidate& candidate) { return candidate.logit < least; });
    candidates_.erase(worse, candidates_.end());
  }
  double total = 0;
  for (const Candidate& candidate : candidates_)
    total += weight(candidate, options_.temperature);
  const double target = NextUniform() * total;
  double sum = 0;
  for (const Candidate& candidate : candidates_) {
    sum += weight(candidate, options_.temperature);
    if (sum > target) return candidate.id;
  }
  return candidates_.front().id;  // only if rounding made target == total
}

double Sampler::NextUniform() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return static_cast<double>(result >> 11) * 0x1p-53;
}

}  // namespace coldstream
