#include "runtime/byte_level.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/utf8.h"

namespace coldstream {
namespace {

constexpr bool SpellsItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

constexpr int kOthers = 68;  // bytes that do not spell themselves
constexpr int kCodes = 0x100 + kOthers;

struct Tables {
  std::array<char32_t, 256> code_of_byte{};
  std::array<int16_t, kCodes> byte_of_code{};  // -1: not in the map
};

constexpr Tables MakeTables() {
  Tables tables;
  for (auto& byte : tables.byte_of_code) byte = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int code = SpellsItself(byte) ? byte : next++;
    tables.code_of_byte[static_cast<size_t>(byte)] =
        static_cast<char32_t>(code);
    tables.byte_of_code[static_cast<size_t>(code)] = static_cast<int16_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = MakeTables();
static_assert(kTables.code_of_byte[' '] == 0x120);
static_assert(kTables.code_of_byte[0xAD] == 0x143);  // the last of the others

}  // namespace

std::string ToByteLevel(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    AppendUtf8(kTables.code_of_byte[static_cast<uint8_t>(byte)], &text);
  }
  return text;
}

bool FromByteLevel(std::string_view text, std::string* bytes) {
  const size_t old_size = bytes->size();
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    const int16_t byte =
        c.valid && c.code < kCodes ? kTables.byte_of_code[c.code] : int16_t{-1};
    if (byte < 0) {
      bytes->resize(old_size);
      return false;
    }
    bytes->push_back(static_cast<char>(static_cast<uint8_t>(byte)));
    pos += c.length;
  }
  return true;
}

}  // namespace coldstream
