#include "tools/quant_mix.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace coldstream {
namespace {

// general.file_type of files in one type; GGUF specification, "file_type".
uint32_t FileTypeOf(DType type) {
  switch (type) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 7;
    case DType::kQ5_0:
      return 8;
    case DType::kQ5_1:
      return 9;
    case DType::kQ2_K:
      return 10;
    case DType::kQ3_K:
      return 11;
    case DType::kQ4_K:
      return 14;
    case DType::kQ5_K:
      return 16;
    case DType::kQ6_K:
      return 18;
    case DType::kIQ4_NL:
      return 25;
    case DType::kIQ4_XS:
      return 30;
    case DType::kBF16:
      return 32;
    case DType::kMXFP4:
      return 38;
  }
  CHECK(false);
}

struct MixName {
  const char* name;
  uint32_t file_type;
  DType base;
};
// In the order of QuantMix::Rule, past kUniform.
constexpr std::array kMixes = {
    MixName{"q3_k_m", 12, DType::kQ3_K},
    MixName{"q4_k_m", 15, DType::kQ4_K},
    MixName{"q5_k_m", 17, DType::kQ5_K},
};

// The layers that the _m mixes give more bits: the first and last eighth, and
// every third between.
bool GetsMoreBits(int64_t layer, int64_t layers) {
  const int64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

DType Q3MType(const WeightPlace& place) {
  switch (place.role) {
    case WeightRole::kAttentionV:
      return place.layer < 2 ? DType::kQ5_K : DType::kQ4_K;
    case WeightRole::kFfnDown:
      return place.layer < place.layers / 16 ? DType::kQ5_K : DType::kQ4_K;
    case WeightRole::kAttentionOutput:
      return DType::kQ4_K;
    default:
      return DType::kQ3_K;
  }
}

// q4_k_m and q5_k_m differ only in their base type.
DType MoreBitsType(DType base, const WeightPlace& place) {
  const bool eligible = place.role == WeightRole::kAttentionV ||
                        place.role == WeightRole::kFfnDown;
  return eligible && GetsMoreBits(place.layer, place.layers) ? DType::kQ6_K
                                                             : base;
}

// An 80-layer model with eight heads to a KV head has so small a V matrix that
// it never gets less than q5_k.
DType RaiseSmallV(DType type, const WeightPlace& place) {
  const bool small = place.role == WeightRole::kAttentionV &&
                     place.layers == 80 && place.heads_per_kv_head == 8;
  const bool low = type == DType::kQ3_K || type == DType::kQ4_K;
  return small && low ? DType::kQ5_K : type;
}

}  // namespace

StatusOr<QuantMix> QuantMix::FromName(std::string_view name) {
  QuantMix mix;
  mix.name_ =
      absl::AsciiStrToLower(absl::string_view(name.data(), name.size()));
  for (size_t i = 0; i < kMixes.size(); ++i) {
    if (mix.name_ != kMixes[i].name) continue;
    mix.file_type_ = kMixes[i].file_type;
    mix.base_ = kMixes[i].base;
    mix.rule_ = static_cast<Rule>(i + 1);
    return mix;
  }
  const std::optional<DType> type = DTypeFromName(name);
  if (!type)
    return absl::InvalidArgumentError(absl::StrFormat(
        "unknown type '%s', expected one of: %s", std::string(name), Names()));
  mix.file_type_ = FileTypeOf(*type);
  mix.base_ = *type;
  return mix;
}

std::string QuantMix::Names() {
  std::string names = SupportedDTypeNames();
  for (const MixName& mix : kMixes) names += std::string(", ") + mix.name;
  return names;
}

DType QuantMix::TypeFor(const WeightPlace& place) const {
  if (rule_ == Rule::kUniform) return base_;
  if (place.role == WeightRole::kHead) return DType::kQ6_K;
  const DType type =
      rule_ == Rule::kQ3M ? Q3MType(place) : MoreBitsType(base_, place);
  return RaiseSmallV(type, place);
}

DType FallbackFor(DType type, uint64_t cols) {
  if (cols % InfoOf(type).block_elements == 0) return type;
  if (cols % 32 != 0) return DType::kF16;
  switch (type) {
    case DType::kQ4_K:
      return DType::kQ5_0;
    case DType::kQ5_K:
      return DType::kQ5_1;
    case DType::kQ6_K:
      return DType::kQ8_0;
    default:  // the other types in blocks of 256: q2_k, q3_k, iq4_xs
      return DType::kIQ4_NL;
  }
}

}  // namespace coldstream
