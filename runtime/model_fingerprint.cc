#include "runtime/model_fingerprint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "absl/strings/str_format.h"
#include "runtime/fingerprint.h"
#include "runtime/profile_keys.h"

namespace coldstream {
namespace {

constexpr size_t kSampleBytes = 4096;

template <typename T>
void AddRaw(std::span<const T> values, Fingerprint* print) {
  static_assert(std::is_arithmetic_v<T>);
  print->Add(
      {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

void AddText(std::string_view text, Fingerprint* print) {
  const uint64_t size = text.size();
  AddRaw(std::span(&size, 1), print);
  print->Add(text);
}

void AddValue(const MetadataValue& value, Fingerprint* print) {
  std::visit(
      [print]<typename T>(const T& held) {
        if constexpr (std::is_arithmetic_v<T>) {
          AddRaw(std::span(&held, 1), print);
        } else if constexpr (std::is_same_v<T, std::string>) {
          AddText(held, print);
        } else if constexpr (std::is_same_v<T, StringArray>) {
          for (size_t i = 0; i < held.size(); ++i) AddText(held[i], print);
        } else {
          AddRaw(std::span(held), print);
        }
      },
      value);
}

// From the middle: tables begin with rows that training seldom touches.
Status AddSample(const Checkpoint& checkpoint, const Extent& extent,
                 Fingerprint* print) {
  std::array<std::byte, kSampleBytes> bytes;
  const std::span<std::byte> sample(
      bytes.data(), std::min<uint64_t>(kSampleBytes, extent.length));
  const uint64_t offset = extent.offset + (extent.length - sample.size()) / 2;
  const auto file = static_cast<size_t>(extent.file);
  RETURN_IF_ERROR(checkpoint.files()[file]->ReadExactly(offset, sample));
  print->Add({reinterpret_cast<const char*>(sample.data()), sample.size()});
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::string> ModelFingerprint(const Checkpoint& checkpoint) {
  Fingerprint print;
  for (const auto& [key, value] : checkpoint.metadata().values()) {
    if (key.starts_with("split.")) continue;
    AddText(key, &print);
    AddValue(value, &print);
  }
  for (const TensorInfo& tensor : checkpoint.tensors())
    RETURN_IF_ERROR(AddSample(checkpoint, tensor.extent, &print));
  return absl::StrFormat("%s, values %s", ModelKey(checkpoint), print.Hex());
}

}  // namespace coldstream
