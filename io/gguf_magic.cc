#include "io/gguf_magic.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "io/printable.h"

namespace coldstream {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kLfsPointer = "version https://git-lfs";
constexpr uint64_t kFixedHeaderBytes = 24;  // magic, version, two counts

// "1234" from the line "size 1234" of a Git LFS pointer; "unknown" without.
std::string LfsSize(std::string_view text) {
  const size_t line = text.find("\nsize ");
  if (line == std::string_view::npos) return "unknown";
  const std::string_view rest = text.substr(line + 6);
  return Printable(rest.substr(0, rest.find_first_of("\r\n")), 20);
}

// What a file that begins with `text` looks like, for people.
std::string LooksLike(std::string_view text) {
  const auto starts = [&](std::string_view s) { return text.starts_with(s); };
  if (starts("<!DOCTYPE") || starts("<!doctype") || starts("<html"))
    return "a web page, not a download";
  if (starts("lmgg") || starts("tjgg") || starts("fmgg") || starts("algg"))
    return "a GGML file older than GGUF; convert it to GGUF";
  if (starts("PK\x03\x04")) return "a zip archive or a PyTorch checkpoint";
  if (starts("\x1F\x8B")) return "a gzip archive";
  if (text.size() > 8 && text[8] == '{') return "a safetensors file";
  return "not a GGUF file";
}

}  // namespace

StatusOr<uint32_t> ReadGgufVersion(const File& file) {
  std::string head(std::min<uint64_t>(file.size(), 512), '\0');
  RETURN_IF_ERROR(file.ReadExactly(0, std::as_writable_bytes(std::span(head))));
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(file.path() + ": " + what);
  };
  if (head.starts_with(kLfsPointer)) {
    return absl::DataLossError(absl::StrFormat(
        "%s: is a Git LFS pointer of %d bytes, not the model (size %s): fetch "
        "it with git lfs pull",
        file.path(), file.size(), LfsSize(head)));
  }
  const size_t known = std::min(head.size(), kMagic.size());
  const bool magic = head.compare(0, known, kMagic, 0, known) == 0;
  if (magic && file.size() < kFixedHeaderBytes) {
    return absl::DataLossError(absl::StrFormat(
        "%s: file is incomplete: header needs at least %d bytes, file has %d",
        file.path(), kFixedHeaderBytes, file.size()));
  }
  if (head.starts_with("FUGG"))
    return invalid("is big-endian GGUF, which is not supported; convert it");
  if (!magic) {
    return invalid(absl::StrFormat(
        "is %s: expected the magic \"GGUF\" at offset 0, got \"%s\"",
        LooksLike(head), Printable(head.substr(0, 4), 40)));
  }
  uint32_t version = 0;
  std::memcpy(&version, head.data() + 4, sizeof(version));
  // Versions are small, so a big-endian one has its low half empty.
  if (version != 0 && (version & 0xFFFF) == 0)
    return invalid("is big-endian GGUF, which is not supported; convert it");
  if (version == 1) {
    return invalid(
        "is GGUF v1, expected v2 or v3 (version at offset 4); convert it");
  }
  if (version != 2 && version != 3) {
    return invalid(absl::StrFormat(
        "is GGUF v%d, expected v2 or v3 (version at offset 4)", version));
  }
  return version;
}

}  // namespace coldstream
