#include "runtime/chat_format_recognition.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "io/printable.h"
#include "runtime/jinja_text.h"
#include "runtime/strip_space.h"

namespace coldstream {
namespace {

using Tokens = std::vector<std::string>;

constexpr size_t kMostNamed = 8;

struct Family {
  std::string_view format;
  Tokens required;
  Tokens known;  // may be there too
};

std::vector<Family> Families() {
  return {
      {"chatml",
       {"<|im_start|>", "<|im_end|>"},
       {"<|endoftext|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
        "<|video_pad|>"}},
      {"llama3",
       {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
       {"<|begin_of_text|>", "<|end_of_text|>", "<|python_tag|>", "<|eom_id|>",
        "<|image|>"}},
      {"command-r",
       {"<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>",
        "<|END_OF_TURN_TOKEN|>"},
       {"<|SYSTEM_TOKEN|>"}},
      {"mistral-v1",
       {"[INST]", "[/INST]"},
       {"[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]",
        "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[IMG]"}},
  };
}

bool Contains(const Tokens& tokens, const std::string& token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

// "a, b, c and 4 more", fit for a message.
std::string Named(Tokens tokens) {
  const size_t more = tokens.size() - std::min(tokens.size(), kMostNamed);
  tokens.resize(tokens.size() - more);
  for (std::string& token : tokens) token = Printable(token, 80);
  std::string text = absl::StrJoin(tokens, ", ");
  if (more > 0) text += absl::StrFormat(" and %d more", more);
  return text;
}

StatusOr<Family> FindFamily(const Tokens& tokens) {
  for (const Family& family : Families()) {
    const bool whole = std::all_of(
        family.required.begin(), family.required.end(),
        [&](const std::string& token) { return Contains(tokens, token); });
    if (!whole) continue;
    Tokens foreign;
    for (const std::string& token : tokens) {
      if (!Contains(family.required, token) && !Contains(family.known, token))
        foreign.push_back(token);
    }
    if (foreign.empty()) return family;
    return absl::InvalidArgumentError(absl::StrFormat(
        "the chat template has the markers of %s, but also %s, which is "
        "another format",
        std::string(family.format), Named(foreign)));
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "the chat template is of no known family: expected the markers of one "
      "of them (<|im_start|>, <|start_header_id|>, <|START_OF_TURN_TOKEN|>, "
      "[INST]), got %s",
      tokens.empty() ? "none" : Named(tokens)));
}

// Which of the family's formats; only Mistral's and Llama's have several.
std::string_view FormatName(const Family& family, const JinjaText& text) {
  if (family.format == "llama3" && text.Has("Cutting Knowledge Date:"))
    return "llama3.1";
  if (family.format != "mistral-v1" || text.Has(" [/INST]"))
    return family.format;
  return text.Has("[INST] ") ? "mistral-v3" : "mistral-v3-tekken";
}

Status TakeDefaultSystem(const JinjaText& text, ChatFormat* format) {
  if (format->system.open.empty() || !format->system_head.empty())
    return absl::OkStatus();
  // Without the line end that may follow it.
  const std::string close(StripSpace(format->system.close));
  const Tokens found = text.Between(format->system.open, close);
  if (found.size() > 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the chat template has %d default system messages, expected at most "
        "one: \"%s\", \"%s\"",
        found.size(), Printable(found[0], 60), Printable(found[1], 60)));
  }
  if (!found.empty()) format->default_system = found[0];
  return absl::OkStatus();
}

void TakeTrim(const JinjaText& text, ChatFormat* format) {
  if (!text.HasAny({"|trim", "| trim", ".strip()"})) {
    format->trim = ChatTrim::kNone;
  } else if (format->trim == ChatTrim::kNone && format->name == "chatml") {
    format->trim = ChatTrim::kAll;
  }
}

}  // namespace

StatusOr<ChatFormat> RecogniseChatFormat(std::string_view jinja) {
  if (jinja.size() > kLargestChatTemplate) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the chat template is too large: expected at most %d "
                        "bytes, got %d",
                        kLargestChatTemplate, jinja.size()));
  }
  const JinjaText text(jinja);
  ASSIGN_OR_RETURN(const Family family, FindFamily(text.ControlTokens()));
  ASSIGN_OR_RETURN(ChatFormat format, FindChatFormat(FormatName(family, text)));
  RETURN_IF_ERROR(TakeDefaultSystem(text, &format));
  TakeTrim(text, &format);
  const std::string more = text.AfterLast(format.answer);
  if (!StripSpace(more).empty()) format.answer += more;
  format.bos =
      text.HasAny({"bos_token", "<|begin_of_text|>", "<BOS_TOKEN>", "<s>"});
  format.drop_thoughts =
      text.HasAny({"split('</think>')", "split(\"</think>\")"});
  return format;
}

}  // namespace coldstream
