#include "tools/batch_messages.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

using Json = nlohmann::json;

// The text of a part {"type": "text", "text": ...}, if it is one.
const std::string* TextOfPart(const Json& part) {
  if (!part.is_object() || part.size() != 2) return nullptr;
  const auto type = part.find("type");
  const auto text = part.find("text");
  if (type == part.end() || *type != "text") return nullptr;
  if (text == part.end() || !text->is_string()) return nullptr;
  return &text->get_ref<const std::string&>();
}

std::string ReadContent(const Json& content, BatchFields* fields) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array() || content.empty()) {
    fields->Fail("invalid_type", "content", "a string or a list of text parts",
                 content);
    return "";
  }
  std::string all;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string* text = TextOfPart(content[i]);
    if (text == nullptr) {
      const bool typed = content[i].is_object() && content[i].contains("type");
      fields->Fail("unsupported_value", absl::StrFormat("content[%d]", i),
                   "a part {\"type\": \"text\", \"text\": \"...\"}",
                   typed ? content[i]["type"] : content[i]);
      return "";
    }
    if (i > 0) all += '\n';
    all += *text;
  }
  return all;
}

ChatMessage ReadMessage(BatchFields* fields) {
  constexpr char kRoles[] = "system, user or assistant";
  ChatMessage read;
  const Json* role = fields->Require("role", kRoles);
  if (role != nullptr) {
    const StatusOr<ChatRole> parsed =
        ParseChatRole(role->is_string() ? role->get<std::string>() : "");
    if (!parsed.ok()) fields->Fail("invalid_value", "role", kRoles, *role);
    read.role = parsed.value_or(ChatRole::kUser);
  }
  const Json* content =
      fields->Require("content", "a string or a list of text parts");
  if (content != nullptr) read.content = ReadContent(*content, fields);
  fields->OnlyNeutral("tool_calls", {Json::array()});
  fields->RefuseOthers();
  return read;
}

}  // namespace

std::vector<ChatMessage> ReadBatchMessages(const Json& messages,
                                           BatchFields* fields) {
  if (!messages.is_array() || messages.empty()) {
    fields->Fail("invalid_type", "messages", "a list of at least one message",
                 messages);
    return {};
  }
  std::vector<ChatMessage> read;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string path = absl::StrFormat("messages[%d]", i);
    if (!messages[i].is_object()) {
      fields->Fail("invalid_type", path, "an object", messages[i]);
      return {};
    }
    BatchFields members(messages[i], "body." + path);
    read.push_back(ReadMessage(&members));
    if (members.error()) {
      fields->Fail(*members.error());
      return {};
    }
  }
  return read;
}

}  // namespace coldstream
