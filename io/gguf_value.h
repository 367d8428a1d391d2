// A metadata value with the exact GGUF type it is to be stored as.
#ifndef COLDSTREAM_IO_GGUF_VALUE_H_
#define COLDSTREAM_IO_GGUF_VALUE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/metadata.h"

namespace coldstream {

//   GgufValue(uint32_t{32}), GgufValue("llama"), GgufValue(true),
//   GgufValue(std::vector<float>{...})
using GgufValue = std::variant<
    uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool,
    std::string, uint64_t, int64_t, double, std::vector<uint8_t>,
    std::vector<int8_t>, std::vector<uint16_t>, std::vector<int16_t>,
    std::vector<uint32_t>, std::vector<int32_t>, std::vector<float>,
    std::vector<bool>, StringArray, std::vector<uint64_t>, std::vector<int64_t>,
    std::vector<double>>;

// Appends type id and value, little-endian, as they stand in a GGUF header.
void AppendGgufValue(const GgufValue& value, std::string* out);

// Appends a string with its 64-bit length before it.
void AppendGgufString(std::string_view text, std::string* out);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_GGUF_VALUE_H_
