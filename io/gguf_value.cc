#include "io/gguf_value.h"

#include <bit>
#include <string_view>
#include <type_traits>

#include "io/gguf.h"

namespace coldstream {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void AppendNumber(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
constexpr GgufType TypeIdOf() {
  if constexpr (std::is_same_v<T, uint8_t>) return GgufType::kU8;
  if constexpr (std::is_same_v<T, int8_t>) return GgufType::kI8;
  if constexpr (std::is_same_v<T, uint16_t>) return GgufType::kU16;
  if constexpr (std::is_same_v<T, int16_t>) return GgufType::kI16;
  if constexpr (std::is_same_v<T, uint32_t>) return GgufType::kU32;
  if constexpr (std::is_same_v<T, int32_t>) return GgufType::kI32;
  if constexpr (std::is_same_v<T, float>) return GgufType::kF32;
  if constexpr (std::is_same_v<T, bool>) return GgufType::kBool;
  if constexpr (std::is_same_v<T, uint64_t>) return GgufType::kU64;
  if constexpr (std::is_same_v<T, int64_t>) return GgufType::kI64;
  if constexpr (std::is_same_v<T, double>) return GgufType::kF64;
  return GgufType::kString;
}

struct Appender {
  std::string* out;

  void Id(GgufType type) const {
    AppendNumber(static_cast<uint32_t>(type), out);
  }
  template <typename T>
  void Entry(const T& value) const {
    if constexpr (std::is_same_v<T, bool>) {
      AppendNumber(static_cast<uint8_t>(value), out);
    } else {
      AppendNumber(value, out);
    }
  }

  template <typename T>
  void operator()(const T& scalar) const {
    Id(TypeIdOf<T>());
    Entry(scalar);
  }
  void operator()(const std::string& text) const {
    Id(GgufType::kString);
    AppendGgufString(text, out);
  }
  template <typename T>
  void operator()(const std::vector<T>& array) const {
    Id(GgufType::kArray);
    Id(TypeIdOf<T>());
    AppendNumber(uint64_t{array.size()}, out);
    for (const T entry : array) Entry(entry);
  }
  void operator()(const StringArray& array) const {
    Id(GgufType::kArray);
    Id(GgufType::kString);
    AppendNumber(uint64_t{array.size()}, out);
    for (size_t i = 0; i < array.size(); ++i) AppendGgufString(array[i], out);
  }
};

}  // namespace

void AppendGgufString(std::string_view text, std::string* out) {
  AppendNumber(uint64_t{text.size()}, out);
  out->append(text);
}

void AppendGgufValue(const GgufValue& value, std::string* out) {
  std::visit(Appender{out}, value);
}

}  // namespace coldstream
