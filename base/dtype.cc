#include "base/dtype.h"

#include <array>

#include "absl/strings/ascii.h"

namespace coldstream {
namespace {

// Block sizes: GGUF specification, "ggml types".
constexpr std::array kTable = {
    DTypeInfo{DType::kF32, "f32", 1, 4},
    DTypeInfo{DType::kF16, "f16", 1, 2},
    DTypeInfo{DType::kQ4_0, "q4_0", 32, 18},
    DTypeInfo{DType::kQ4_1, "q4_1", 32, 20},
    DTypeInfo{DType::kQ5_0, "q5_0", 32, 22},
    DTypeInfo{DType::kQ5_1, "q5_1", 32, 24},
    DTypeInfo{DType::kQ8_0, "q8_0", 32, 34},
    DTypeInfo{DType::kQ2_K, "q2_k", 256, 84},
    DTypeInfo{DType::kQ3_K, "q3_k", 256, 110},
    DTypeInfo{DType::kQ4_K, "q4_k", 256, 144},
    DTypeInfo{DType::kQ5_K, "q5_k", 256, 176},
    DTypeInfo{DType::kQ6_K, "q6_k", 256, 210},
    DTypeInfo{DType::kIQ4_NL, "iq4_nl", 32, 18},
    DTypeInfo{DType::kIQ4_XS, "iq4_xs", 256, 136},
    DTypeInfo{DType::kBF16, "bf16", 1, 2},
    DTypeInfo{DType::kMXFP4, "mxfp4", 32, 17},
};

// kTable index + 1 by id; 0 means not supported.
constexpr std::array<uint8_t, kDTypeIdLimit> MakeIndex() {
  std::array<uint8_t, kDTypeIdLimit> index{};
  for (size_t i = 0; i < kTable.size(); ++i)
    index[static_cast<size_t>(kTable[i].type)] = static_cast<uint8_t>(i + 1);
  return index;
}
constexpr std::array<uint8_t, kDTypeIdLimit> kIndex = MakeIndex();

}  // namespace

std::span<const DTypeInfo> AllDTypes() { return kTable; }

const DTypeInfo& InfoOf(DType type) {
  const size_t id = static_cast<size_t>(type);
  CHECK(id < kIndex.size() && kIndex[id] != 0);
  return kTable[kIndex[id] - 1u];
}

std::optional<DType> DTypeFromId(uint32_t gguf_id) {
  if (gguf_id >= kIndex.size() || kIndex[gguf_id] == 0) return std::nullopt;
  return kTable[kIndex[gguf_id] - 1u].type;
}

std::optional<DType> DTypeFromName(std::string_view name) {
  const std::string lower =
      absl::AsciiStrToLower(absl::string_view(name.data(), name.size()));
  for (const DTypeInfo& info : kTable)
    if (lower == info.name) return info.type;
  return std::nullopt;
}

std::string SupportedDTypeNames() {
  std::string names;
  for (const DTypeInfo& info : kTable) {
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

}  // namespace coldstream
