// A conversation written out for a model: stretches of text, each with what
// control tokens in it mean, and their token ids.
//
// Invariant: only the template's own text gives control tokens. What users (or
// anybody else in the conversation) wrote never does, whatever it spells, also
// where a vocabulary calls its markers user-defined tokens, which are otherwise
// found in any text. Formats whose markers are ordinary text (mistral-v1's
// [INST], plain) cannot tell a user's from their own.
#ifndef COLDSTREAM_RUNTIME_CHAT_PROMPT_H_
#define COLDSTREAM_RUNTIME_CHAT_PROMPT_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer.h"

namespace coldstream {

struct ChatPiece {
  std::string text;
  SpecialTokens special = SpecialTokens::kAsText;

  friend bool operator==(const ChatPiece&, const ChatPiece&) = default;
};

struct ChatPrompt {
  std::vector<ChatPiece> pieces;
  bool bos = false;  // begins with BOS even if the tokenizer adds none
  // The template's markers.
  std::vector<std::string> markers;

  // Everything as one text, without BOS: for people and tests.
  std::string text() const;
};

// The ids, with exactly one BOS in front where prompt or tokenizer want one and
// the vocabulary has it.
std::vector<TokenId> EncodeChatPrompt(const ChatPrompt& prompt,
                                      const Tokenizer& tokenizer);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_CHAT_PROMPT_H_
