#include "runtime/pooling.h"

#include <cmath>
#include <cstddef>
#include <string>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace coldstream {
namespace {

constexpr Pooling kPoolings[] = {Pooling::kMean, Pooling::kLast, Pooling::kCls};

// Values of [arch].pooling_type.
constexpr int64_t kNoPooling = 0;
constexpr int64_t kMeanPooling = 1;
constexpr int64_t kClsPooling = 2;
constexpr int64_t kLastPooling = 3;

}  // namespace

const char* PoolingName(Pooling pooling) {
  switch (pooling) {
    case Pooling::kMean:
      return "mean";
    case Pooling::kLast:
      return "last";
    case Pooling::kCls:
      break;
  }
  return "cls";
}

StatusOr<Pooling> ParsePooling(std::string_view name) {
  for (const Pooling pooling : kPoolings)
    if (name == PoolingName(pooling)) return pooling;
  return absl::InvalidArgumentError(
      absl::StrFormat("pooling: expected mean, last or cls, got \"%s\"",
                      std::string(name.substr(0, 40))));
}

StatusOr<Pooling> DefaultPooling(const Metadata& metadata) {
  ASSIGN_OR_RETURN(const std::string architecture,
                   metadata.GetString("general.architecture"));
  const std::string key = architecture + ".pooling_type";
  if (metadata.Find(key) == nullptr) return Pooling::kMean;
  ASSIGN_OR_RETURN(const int64_t type, metadata.GetInt(key));
  switch (type) {
    case kMeanPooling:
      return Pooling::kMean;
    case kClsPooling:
      return Pooling::kCls;
    case kLastPooling:
      return Pooling::kLast;
    default:
      return absl::InvalidArgumentError(absl::StrFormat(
          "metadata key %s is %d (%s), which makes no vector of a text: say "
          "mean, last or cls",
          key, type, type == kNoPooling ? "no pooling" : "not known here"));
  }
}

HiddenPool::HiddenPool(const EmbedOptions& options, int64_t tokens)
    : pooling_(*options.pooling), length_(options.length), tokens_(tokens) {
  CHECK(tokens >= 1);
}

int64_t HiddenPool::first() const {
  return pooling_ == Pooling::kLast ? tokens_ - 1 : 0;
}

int64_t HiddenPool::end() const {
  return pooling_ == Pooling::kCls ? 1 : tokens_;
}

void HiddenPool::Add(std::span<const float> hidden) {
  CHECK(!complete());
  sum_.resize(hidden.size());
  for (size_t i = 0; i < hidden.size(); ++i)
    sum_[i] += static_cast<double>(hidden[i]);
  ++added_;
}

std::vector<float> HiddenPool::Take() const {
  CHECK(complete());
  double divisor = static_cast<double>(added_);
  if (length_ == VectorLength::kOne) {
    double squares = 0;
    for (const double value : sum_) squares += value * value;
    divisor = squares > 0 ? std::sqrt(squares) : 1;
  }
  std::vector<float> vector;
  vector.reserve(sum_.size());
  for (const double value : sum_)
    vector.push_back(static_cast<float>(value / divisor));
  return vector;
}

}  // namespace coldstream
