#include "runtime/chat_template.h"

#include <algorithm>
#include <cstddef>
#include <fstream>

#include "absl/strings/str_format.h"
#include "io/printable.h"
#include "runtime/chat_format_recognition.h"
#include "runtime/fingerprint.h"
#include "runtime/strip_space.h"

namespace coldstream {
namespace {

StatusOr<ChatFormat> FormatOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string jinja(kLargestChatTemplate + 1, '\0');
  if (file.is_open())
    file.read(jinja.data(), static_cast<std::streamsize>(jinja.size()));
  if (!file.is_open() || file.bad()) {
    return absl::NotFoundError(absl::StrFormat(
        "chat template: \"%s\" is neither a known name (%s) nor a file that "
        "can be read",
        Printable(path, 200), KnownChatFormats()));
  }
  jinja.resize(static_cast<size_t>(file.gcount()));
  StatusOr<ChatFormat> format = RecogniseChatFormat(jinja);
  if (format.ok()) return format;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s", path, MessageOf(format.status())));
}

// The model's own.
StatusOr<ChatFormat> FormatOfModel(const Metadata& metadata) {
  constexpr char kKey[] = "tokenizer.chat_template";
  if (!metadata.Has(kKey)) {
    return absl::NotFoundError(
        absl::StrFormat("the model has no chat template (%s); name one: %s",
                        kKey, KnownChatFormats()));
  }
  ASSIGN_OR_RETURN(const std::string jinja, metadata.GetString(kKey));
  StatusOr<ChatFormat> format = RecogniseChatFormat(jinja);
  if (format.ok()) return format;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s; name one that fits: %s", kKey,
                      MessageOf(format.status()), KnownChatFormats()));
}

// A format of somebody else's choice must mean something to the model.
Status CheckVocabulary(const ChatFormat& format, const Tokenizer& tokenizer) {
  for (const std::string& marker : format.control) {
    if (tokenizer.Encode(marker, SpecialTokens::kParse).size() == 1) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "chat template %s: this model's vocabulary has no control token %s",
        format.name, marker));
  }
  return absl::OkStatus();
}

// What one kind of message is trimmed of.
bool IsTrimmed(ChatTrim trim, ChatRole role) {
  switch (trim) {
    case ChatTrim::kNone:
      return false;
    case ChatTrim::kAnswers:
      return role == ChatRole::kAssistant;
    case ChatTrim::kAllButSystem:
      return role != ChatRole::kSystem;
    case ChatTrim::kAll:
      return true;
  }
  return false;
}

std::string_view WithoutThoughts(std::string_view answer) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = answer.rfind(kEnd);
  if (end == std::string_view::npos) return answer;
  answer.remove_prefix(end + kEnd.size());
  answer.remove_prefix(std::min(answer.find_first_not_of('\n'), answer.size()));
  return answer;
}

class Renderer {
 public:
  Renderer(const ChatFormat& format, std::span<const ChatMessage> messages)
      : format_(format), messages_(messages) {}

  StatusOr<ChatPrompt> Render() {
    if (messages_.empty()) {
      return absl::InvalidArgumentError(
          "messages: expected at least one, got none");
    }
    RETURN_IF_ERROR(CheckSystem());
    RETURN_IF_ERROR(CheckOrder());
    if (!StartsWithSystem()) AddDefaultSystem();
    for (size_t i = 0; i < messages_.size(); ++i) AddMessage(i);
    AddOurs(format_.answer);
    prompt_.bos = format_.bos;
    prompt_.markers = format_.control;
    return std::move(prompt_);
  }

 private:
  bool StartsWithSystem() const {
    return messages_[0].role == ChatRole::kSystem;
  }
  bool SystemIsTurn() const {
    return format_.system_place == SystemPlace::kTurn ||
           format_.system_place == SystemPlace::kFirst;
  }

  Status CheckSystem() const {
    if (format_.system_place == SystemPlace::kTurn) return absl::OkStatus();
    for (size_t i = 1; i < messages_.size(); ++i) {
      if (messages_[i].role != ChatRole::kSystem) continue;
      return absl::InvalidArgumentError(absl::StrFormat(
          "messages[%d]: the chat template %s takes a system message only as "
          "the first",
          i, format_.name));
    }
    return absl::OkStatus();
  }

  Status CheckOrder() const {
    if (format_.order == TurnOrder::kAny) return absl::OkStatus();
    ChatRole expected = ChatRole::kUser;
    for (size_t i = StartsWithSystem() ? 1 : 0; i < messages_.size(); ++i) {
      if (messages_[i].role != expected) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "messages[%d]: in the chat template %s user and assistant must "
            "take turns: expected %s, got %s",
            i, format_.name, ChatRoleName(expected),
            ChatRoleName(messages_[i].role)));
      }
      expected =
          expected == ChatRole::kUser ? ChatRole::kAssistant : ChatRole::kUser;
    }
    if (expected == ChatRole::kAssistant) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("messages: in the chat template %s the last must be a "
                        "user's, got %s's",
                        format_.name, ChatRoleName(messages_.back().role)));
  }

  void AddDefaultSystem() {
    if (format_.default_system.empty() && format_.system_head.empty()) return;
    AddOurs(format_.system.open);
    AddOurs(format_.system_head);
    AddOurs(format_.default_system);
    AddOurs(format_.system.close);
  }

  void AddMessage(size_t index) {
    const ChatMessage& message = messages_[index];
    switch (message.role) {
      case ChatRole::kSystem:
        if (!SystemIsTurn()) return;  // a user's turn takes it along
        AddOurs(format_.system.open);
        AddOurs(format_.system_head);
        AddTheirs(message);
        AddOurs(format_.system.close);
        return;
      case ChatRole::kUser:
        AddOurs(format_.user.open);
        if (TakesSystemAlong(index)) {
          AddTheirs(messages_[0]);
          AddOurs("\n\n");
        }
        AddTheirs(message);
        AddOurs(format_.user.close);
        return;
      case ChatRole::kAssistant:
        AddOurs(format_.assistant.open);
        AddTheirs(message);
        AddOurs(format_.assistant.close);
        return;
    }
  }

  bool TakesSystemAlong(size_t index) const {
    if (!StartsWithSystem() || SystemIsTurn()) return false;
    return format_.system_place == SystemPlace::kInFirstUser
               ? index == 1
               : index + 1 == messages_.size();
  }

  void AddOurs(std::string_view text) { Add(text, SpecialTokens::kParse); }

  void AddTheirs(const ChatMessage& message) {
    std::string_view text = message.content;
    if (format_.drop_thoughts && message.role == ChatRole::kAssistant)
      text = WithoutThoughts(text);
    if (IsTrimmed(format_.trim, message.role)) text = StripSpace(text);
    Add(text, SpecialTokens::kAsText);
  }

  void Add(std::string_view text, SpecialTokens special) {
    if (text.empty()) return;
    std::vector<ChatPiece>& pieces = prompt_.pieces;
    // Only ours grow together: each message stays a piece of its own.
    if (special == SpecialTokens::kParse && !pieces.empty() &&
        pieces.back().special == special) {
      pieces.back().text += text;
    } else {
      pieces.push_back({std::string(text), special});
    }
  }

  const ChatFormat& format_;
  const std::span<const ChatMessage> messages_;
  ChatPrompt prompt_;
};

}  // namespace

StatusOr<ChatRole> ParseChatRole(std::string_view name) {
  for (const ChatRole role :
       {ChatRole::kSystem, ChatRole::kUser, ChatRole::kAssistant}) {
    if (name == ChatRoleName(role)) return role;
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("role: expected system, user or assistant, got \"%s\"",
                      Printable(name, 80)));
}

const char* ChatRoleName(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem:
      return "system";
    case ChatRole::kUser:
      return "user";
    case ChatRole::kAssistant:
      return "assistant";
  }
  return "unknown";
}

StatusOr<ChatTemplate> ChatTemplate::Create(const Metadata& metadata,
                                            const Tokenizer& tokenizer,
                                            const std::string& chosen) {
  if (chosen.empty()) {
    ASSIGN_OR_RETURN(ChatFormat own, FormatOfModel(metadata));
    return ChatTemplate(std::move(own));
  }
  StatusOr<ChatFormat> format = FindChatFormat(chosen);
  if (!format.ok()) format = FormatOfFile(chosen);
  RETURN_IF_ERROR(format.status());
  RETURN_IF_ERROR(CheckVocabulary(*format, tokenizer));
  return ChatTemplate(*std::move(format));
}

std::string ChatTemplate::Identity() const {
  Fingerprint print;
  for (const ChatFormat::Turn* turn :
       {&format_.system, &format_.user, &format_.assistant})
    print.Add(absl::StrFormat("%d %s%d %s", turn->open.size(), turn->open,
                              turn->close.size(), turn->close));
  for (const std::string* text :
       {&format_.answer, &format_.system_head, &format_.default_system})
    print.Add(absl::StrFormat("%d %s", text->size(), *text));
  print.Add(absl::StrFormat(
      "%d %d %d %d %d", static_cast<int>(format_.system_place),
      static_cast<int>(format_.order), static_cast<int>(format_.trim),
      format_.bos, format_.drop_thoughts));
  return absl::StrFormat("%s %s", format_.name, print.Hex());
}

StatusOr<ChatPrompt> ChatTemplate::Render(
    std::span<const ChatMessage> messages) const {
  return Renderer(format_, messages).Render();
}

}  // namespace coldstream
