// Messages to a prompt, as the model's family writes conversations.
//
//   ASSIGN_OR_RETURN(auto chat, ChatTemplate::Create(metadata, tokenizer, ""));
//   ASSIGN_OR_RETURN(auto prompt, chat.Render({{ChatRole::kUser, "Hello"}}));
//   request.prompt = EncodeChatPrompt(prompt, tokenizer);
//
// The families are those of runtime/chat_format.h. Jinja templates, the model's
// own or a file, are recognised (runtime/chat_format_recognition.h), not run:
// no C++ library for Jinja is in Debian, and writing one is not what this
// program is for. One that cannot be recognised is an error that says why; no
// text is ever left out. A system message where the family has no system turn
// (mistral) goes in front of a user's text, with a blank line between, as its
// publisher does it. Thread-safety: const methods may be called from several
// threads.
#ifndef COLDSTREAM_RUNTIME_CHAT_TEMPLATE_H_
#define COLDSTREAM_RUNTIME_CHAT_TEMPLATE_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/metadata.h"
#include "runtime/chat_format.h"
#include "runtime/chat_prompt.h"
#include "runtime/tokenizer.h"

namespace coldstream {

enum class ChatRole { kSystem, kUser, kAssistant };

// "system", "user" or "assistant". Errors: InvalidArgument, with those.
StatusOr<ChatRole> ParseChatRole(std::string_view name);
const char* ChatRoleName(ChatRole role);

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string content;

  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

class ChatTemplate {
 public:
  // `chosen`: a name of KnownChatFormats(), else the path of a Jinja file;
  // empty for the model's own (tokenizer.chat_template). Errors: NotFound (no
  // such name or file; the model has no template), InvalidArgument (not
  // recognised; a chosen one needs control tokens that this vocabulary does not
  // have; the file is too large).
  static StatusOr<ChatTemplate> Create(const Metadata& metadata,
                                       const Tokenizer& tokenizer,
                                       const std::string& chosen);
  explicit ChatTemplate(ChatFormat format) : format_(std::move(format)) {}

  // Ends with what the model's answer follows. Errors: InvalidArgument, naming
  // the message by its index: none at all; a system message where this family
  // cannot have one; users and assistant not in turn where they must be.
  StatusOr<ChatPrompt> Render(std::span<const ChatMessage> messages) const;

  const std::string& name() const { return format_.name; }
  // The name and, in 32 digits, everything that goes into a prompt: two
  // templates of one family may differ in a default system message.
  std::string Identity() const;
  // Strings that end an answer, beside the end-of-generation tokens.
  const std::vector<std::string>& stop() const { return format_.stop; }

 private:
  ChatFormat format_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_CHAT_TEMPLATE_H_
