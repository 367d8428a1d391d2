// How a family of models wants a conversation written: the texts around each
// message, as data. A new family is a row in chat_format.cc.
//
//   chatml     <|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n
//   llama3     <|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>...
//   llama3.1   the same, and a system turn that begins with two dates
//   command-r  <|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hello<|END_OF_TURN_TOKEN|>
//   mistral-v1, mistral-v3, mistral-v3-tekken
//              [INST] Hello [/INST], [INST] Hello[/INST], [INST]Hello[/INST]
//   plain      User: Hello\n\nAssistant:        (for models without a template)
//
// Source: the chat_template of the tokenizer_config.json that each family's
// publisher ships; for Mistral also its tokenizer library, mistral-common.
#ifndef COLDSTREAM_RUNTIME_CHAT_FORMAT_H_
#define COLDSTREAM_RUNTIME_CHAT_FORMAT_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace coldstream {

enum class SystemPlace {
  kTurn,         // a turn like the others, wherever it stands
  kFirst,        // a turn, only before all others
  kInFirstUser,  // no turn: its text, a blank line, then the first user's
  kInLastUser,   // ... the last user's
};

enum class TurnOrder {
  kAny,
  kAlternating,  // user, assistant, user, ...; a user has the last word
};

// Whose texts lose white space at both ends.
enum class ChatTrim { kNone, kAnswers, kAllButSystem, kAll };

struct ChatFormat {
  struct Turn {
    std::string open;
    std::string close;
  };

  std::string name;
  Turn system;
  Turn user;
  Turn assistant;
  std::string answer;  // what the model's answer follows
  SystemPlace system_place = SystemPlace::kTurn;
  TurnOrder order = TurnOrder::kAny;
  ChatTrim trim = ChatTrim::kNone;
  bool bos = false;  // begins with BOS even if the tokenizer adds none
  // In front of every system message; where not empty there is a system turn
  // even without one.
  std::string system_head = {};
  std::string default_system = {};  // where the conversation has none
  // Answers given before lose what they say up to </think>.
  bool drop_thoughts = false;
  // What must be control tokens of the vocabulary for the format to mean
  // anything to the model.
  std::vector<std::string> control = {};
  // Ends an answer of a model that has no token for it.
  std::vector<std::string> stop = {};
};

// "chatml, llama3, ...": what FindChatFormat knows.
std::string KnownChatFormats();

// Errors: NotFound, with the known names.
StatusOr<ChatFormat> FindChatFormat(std::string_view name);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_CHAT_FORMAT_H_
