#include "runtime/text_stream.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace coldstream {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

enum class SequenceKind { kValid, kInvalid, kIncomplete };

// A character, or the longest part of one that its bytes agree with.
struct Sequence {
  SequenceKind kind;
  size_t length;  // at least 1
};

// kIncomplete only where `bytes` ends inside a character. `bytes` not empty.
Sequence FirstSequence(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {SequenceKind::kValid, 1};
  size_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0) return {SequenceKind::kInvalid, 1};
  // The second byte rules out overlong forms, surrogates and > U+10FFFF.
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {SequenceKind::kIncomplete, i};
    if (at(i) < low || at(i) > high) return {SequenceKind::kInvalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {SequenceKind::kValid, length};
}

// Bytes at the end of `bytes` that more bytes could complete to a character.
size_t IncompleteTail(std::string_view bytes) {
  const size_t longest = std::min<size_t>(3, bytes.size());
  for (size_t tail = longest; tail > 0; --tail) {
    const Sequence sequence = FirstSequence(bytes.substr(bytes.size() - tail));
    if (sequence.kind == SequenceKind::kIncomplete) return tail;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)) {
  std::erase(stop_strings_, "");
}

std::string TextStream::Push(std::string_view bytes) {
  if (stopped_) return "";
  held_ += bytes;
  size_t shown = FindStop();
  stopped_ = shown != std::string::npos;
  if (!stopped_) shown = ShowableBytes();
  std::string text =
      ReplaceInvalidUtf8(std::string_view(held_).substr(0, shown));
  held_.erase(0, stopped_ ? std::string::npos : shown);
  return text;
}

std::string TextStream::Flush() {
  return ReplaceInvalidUtf8(std::exchange(held_, ""));
}

size_t TextStream::FindStop() const {
  size_t first_end = std::string::npos;
  size_t begin = std::string::npos;
  for (const std::string& stop : stop_strings_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t end = at + stop.size();
    if (end < first_end || (end == first_end && at < begin)) {
      first_end = end;
      begin = at;
    }
  }
  return begin;
}

size_t TextStream::ShowableBytes() const {
  size_t held = 0;  // longest tail that begins a stop string
  for (const std::string& stop : stop_strings_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > held; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) held = n;
    }
  }
  const size_t rest = held_.size() - held;
  return rest - IncompleteTail(std::string_view(held_).substr(0, rest));
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Sequence sequence = FirstSequence(bytes);
    if (sequence.kind == SequenceKind::kValid) {
      text += bytes.substr(0, sequence.length);
    } else {
      text += kReplacement;
    }
    bytes.remove_prefix(sequence.length);
  }
  return text;
}

}  // namespace coldstream
