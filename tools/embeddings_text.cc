#include "tools/embeddings_text.h"

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

void AppendNumber(float value, std::string* out) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), value);
  const std::string_view number(text, static_cast<size_t>(written.ptr - text));
  *out += number;
  // So that readers that tell integers apart see floats alone.
  if (number.find_first_of(".e") == std::string_view::npos) *out += ".0";
}

void AppendList(std::span<const float> vector, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < vector.size(); ++i) {
    if (i > 0) *out += ',';
    AppendNumber(vector[i], out);
  }
  *out += ']';
}

void AppendBase64(std::span<const float> vector, std::string* out) {
  std::string bytes;
  bytes.reserve(vector.size() * sizeof(float));
  for (const float value : vector) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8)
      bytes += static_cast<char>(bits >> shift & 0xFF);
  }
  *out += '"';
  *out += absl::Base64Escape(bytes);
  *out += '"';
}

}  // namespace

std::string EmbeddingsText(std::span<const std::vector<float>> vectors,
                           EmbeddingFormat format) {
  std::string text;
  for (size_t i = 0; i < vectors.size(); ++i) {
    absl::StrAppendFormat(
        &text, "%s{\"object\":\"embedding\",\"index\":%d,\"embedding\":",
        i > 0 ? "," : "", i);
    if (format == EmbeddingFormat::kBase64) {
      AppendBase64(vectors[i], &text);
    } else {
      AppendList(vectors[i], &text);
    }
    text += '}';
  }
  return text;
}

}  // namespace coldstream
