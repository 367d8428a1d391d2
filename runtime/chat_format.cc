#include "runtime/chat_format.h"

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

ChatFormat Chatml() {
  return {.name = "chatml",
          .system = {"<|im_start|>system\n", "<|im_end|>\n"},
          .user = {"<|im_start|>user\n", "<|im_end|>\n"},
          .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
          .answer = "<|im_start|>assistant\n",
          .control = {"<|im_start|>", "<|im_end|>"}};
}

ChatFormat Llama3() {
  return {
      .name = "llama3",
      .system = {"<|start_header_id|>system<|end_header_id|>\n\n",
                 "<|eot_id|>"},
      .user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
      .assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n",
                    "<|eot_id|>"},
      .answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",
      .trim = ChatTrim::kAll,
      .bos = true,
      .control = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}};
}

// The dates are the published defaults. Later versions put in the day of the
// run; here a prompt means the same tomorrow.
ChatFormat Llama31() {
  ChatFormat format = Llama3();
  format.name = "llama3.1";
  format.system_head =
      "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
  return format;
}

ChatFormat CommandR() {
  return {.name = "command-r",
          .system = {"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>",
                     "<|END_OF_TURN_TOKEN|>"},
          .user = {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
                   "<|END_OF_TURN_TOKEN|>"},
          .assistant = {"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
                        "<|END_OF_TURN_TOKEN|>"},
          .answer = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
          .system_place = SystemPlace::kFirst,
          .order = TurnOrder::kAlternating,
          .trim = ChatTrim::kAllButSystem,
          .bos = true,
          .control = {"<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>",
                      "<|CHATBOT_TOKEN|>", "<|SYSTEM_TOKEN|>",
                      "<|END_OF_TURN_TOKEN|>"}};
}

// The first tokenizer writes its markers as ordinary text. Every space counts:
// after a special token SentencePiece adds none itself.
ChatFormat MistralV1() {
  return {.name = "mistral-v1",
          .system = {},
          .user = {" [INST] ", " [/INST]"},
          .assistant = {" ", "</s>"},
          .answer = "",
          .system_place = SystemPlace::kInFirstUser,
          .order = TurnOrder::kAlternating,
          .bos = true,
          .control = {"</s>"}};
}

ChatFormat MistralV3() {
  return {.name = "mistral-v3",
          .system = {},
          .user = {"[INST] ", "[/INST]"},
          .assistant = {" ", "</s>"},
          .answer = "",
          .system_place = SystemPlace::kInLastUser,
          .order = TurnOrder::kAlternating,
          .trim = ChatTrim::kAnswers,
          .bos = true,
          .control = {"[INST]", "[/INST]", "</s>"}};
}

ChatFormat MistralV3Tekken() {
  ChatFormat format = MistralV3();
  format.name = "mistral-v3-tekken";
  format.user.open = "[INST]";
  format.assistant.open = "";
  format.trim = ChatTrim::kNone;
  return format;
}

ChatFormat Plain() {
  return {.name = "plain",
          .system = {"", "\n\n"},
          .user = {"User: ", "\n\n"},
          .assistant = {"Assistant: ", "\n\n"},
          .answer = "Assistant:",
          .trim = ChatTrim::kAll,
          .stop = {"\nUser:"}};
}

struct Row {
  std::string_view name;
  ChatFormat (*make)();
};
constexpr Row kRows[] = {
    {"chatml", &Chatml},        {"llama3", &Llama3},
    {"llama3.1", &Llama31},     {"command-r", &CommandR},
    {"mistral-v1", &MistralV1}, {"mistral-v3", &MistralV3},
    {"plain", &Plain},          {"mistral-v3-tekken", &MistralV3Tekken},
};

}  // namespace

std::string KnownChatFormats() {
  std::string names;
  for (const Row& row : kRows) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

StatusOr<ChatFormat> FindChatFormat(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.make();
  }
  return absl::NotFoundError(
      absl::StrFormat("no chat template is named \"%s\"; known: %s",
                      std::string(name), KnownChatFormats()));
}

}  // namespace coldstream
