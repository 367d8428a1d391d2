// GGUF headers byte by byte, right or wrong, for tests of the parser.
//
//   GgufBytes bytes;
//   bytes.Header(/*tensors=*/1, /*pairs=*/1);
//   bytes.Key("general.alignment", GgufType::kU32).U32(64);
//   bytes.Tensor("a", {32}, 0, 0);
//   bytes.AlignTo(64).Zeros(128);
#ifndef COLDSTREAM_TESTS_SUPPORT_GGUF_BYTES_H_
#define COLDSTREAM_TESTS_SUPPORT_GGUF_BYTES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "io/gguf.h"

namespace coldstream {

class GgufBytes {
 public:
  GgufBytes& U8(uint8_t value) { return Number(value); }
  GgufBytes& U16(uint16_t value) { return Number(value); }
  GgufBytes& U32(uint32_t value) { return Number(value); }
  GgufBytes& U64(uint64_t value) { return Number(value); }
  GgufBytes& Text(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  // With its length before it.
  GgufBytes& String(std::string_view text) {
    return U64(text.size()).Text(text);
  }
  GgufBytes& Type(GgufType type) { return U32(static_cast<uint32_t>(type)); }
  GgufBytes& Zeros(uint64_t count) {
    bytes_.append(count, '\0');
    return *this;
  }
  GgufBytes& AlignTo(uint64_t alignment) {
    return Zeros((alignment - bytes_.size() % alignment) % alignment);
  }

  GgufBytes& Header(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
    return Text("GGUF").U32(version).U64(tensors).U64(pairs);
  }
  GgufBytes& Key(std::string_view key, GgufType type) {
    return String(key).Type(type);
  }
  GgufBytes& ArrayKey(std::string_view key, GgufType type, uint64_t count) {
    return Key(key, GgufType::kArray).Type(type).U64(count);
  }
  GgufBytes& Tensor(std::string_view name, std::initializer_list<uint64_t> dims,
                    uint32_t type, uint64_t offset) {
    String(name).U32(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) U64(dim);
    return U32(type).U64(offset);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  GgufBytes& Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }

  std::string bytes_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_GGUF_BYTES_H_
