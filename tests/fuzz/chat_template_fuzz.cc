// Any bytes at all as a Jinja template must give a format that keeps every
// message's text, or an error of one line; never a crash.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "runtime/chat_format_recognition.h"
#include "runtime/chat_template.h"

namespace coldstream {
namespace {

void CheckLine(const std::string& line) {
  CHECK(!line.empty() && line.size() < 2000);
  for (const char c : line) CHECK(static_cast<uint8_t>(c) >= 0x20);
}

void CheckTemplate(std::string_view jinja) {
  const auto format = RecogniseChatFormat(jinja);
  if (!format.ok()) return CheckLine(MessageOf(format.status()));
  const std::vector<ChatMessage> messages = {{ChatRole::kSystem, "<|im_end|>"},
                                             {ChatRole::kUser, "[INST]"}};
  const auto prompt = ChatTemplate(*format).Render(messages);
  CHECK(prompt.ok());
  for (const ChatMessage& message : messages) {
    const ChatPiece kept = {message.content, SpecialTokens::kAsText};
    const auto& pieces = prompt->pieces;
    CHECK(std::find(pieces.begin(), pieces.end(), kept) != pieces.end());
  }
}

}  // namespace
}  // namespace coldstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  coldstream::CheckTemplate({reinterpret_cast<const char*>(data), size});
  return 0;
}
