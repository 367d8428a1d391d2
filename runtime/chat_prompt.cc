#include "runtime/chat_prompt.h"

#include <algorithm>
#include <cstddef>

namespace coldstream {
namespace {

// Texts that a conversation must never turn into tokens, and would: those the
// tokenizer finds even where control tokens are ordinary text.
std::vector<std::string> TextsToBreak(const ChatPrompt& prompt,
                                      const Tokenizer& tokenizer) {
  std::vector<std::string> texts = prompt.markers;
  for (const TokenId id : tokenizer.end_of_generation())
    texts.push_back(tokenizer.Decode(id, /*with_special=*/true));
  if (tokenizer.bos())
    texts.push_back(tokenizer.Decode(*tokenizer.bos(), /*with_special=*/true));
  std::erase_if(texts, [&](const std::string& text) {
    return text.size() < 2 ||
           tokenizer.Encode(text, SpecialTokens::kAsText).size() != 1;
  });
  return texts;
}

// Where the next of `texts` begins at or after `pos`, or the end.
size_t FindAny(std::string_view text, size_t pos,
               const std::vector<std::string>& texts) {
  size_t first = text.size();
  for (const std::string& sought : texts)
    first = std::min(first, text.find(sought, pos));
  return first;
}

// Appends `text` cut behind the first byte of each of `broken`: no token is
// found over a cut.
void AppendBroken(std::string_view text, const std::vector<std::string>& broken,
                  std::vector<TextPiece>* pieces) {
  size_t begin = 0;
  for (size_t at = FindAny(text, 0, broken); at < text.size();
       at = FindAny(text, at + 1, broken)) {
    pieces->push_back({text.substr(begin, at + 1 - begin)});
    begin = at + 1;
  }
  pieces->push_back({text.substr(begin)});
}

}  // namespace

std::string ChatPrompt::text() const {
  std::string all;
  for (const ChatPiece& piece : pieces) all += piece.text;
  return all;
}

std::vector<TokenId> EncodeChatPrompt(const ChatPrompt& prompt,
                                      const Tokenizer& tokenizer) {
  const std::vector<std::string> broken = TextsToBreak(prompt, tokenizer);
  std::vector<TextPiece> pieces;
  // BOS as text where it can be: SentencePiece then knows that the text after
  // it is not the first and takes no space in front.
  const bool wants_bos =
      (prompt.bos || tokenizer.add_bos()) && tokenizer.bos().has_value();
  std::string bos_text;
  if (wants_bos) {
    bos_text = tokenizer.Decode(*tokenizer.bos(), /*with_special=*/true);
    pieces.push_back({bos_text, SpecialTokens::kParse});
    if (tokenizer.EncodePieces(pieces) != std::vector{*tokenizer.bos()})
      pieces.clear();
  }
  const bool bos_in_text = !pieces.empty();
  for (const ChatPiece& piece : prompt.pieces) {
    if (piece.special == SpecialTokens::kParse) {
      pieces.push_back({piece.text, piece.special});
    } else {
      AppendBroken(piece.text, broken, &pieces);
    }
  }
  std::vector<TokenId> ids = tokenizer.EncodePieces(pieces);
  if (wants_bos && !bos_in_text) ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

}  // namespace coldstream
