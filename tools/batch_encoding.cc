#include "tools/batch_encoding.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

Status CheckIds(const std::vector<TokenId>& ids, const Tokenizer& tokenizer) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < tokenizer.vocab_size()) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "token %d of the prompt: expected an id below the vocabulary's %d, got "
        "%d",
        i, tokenizer.vocab_size(), ids[i]));
  }
  return absl::OkStatus();
}

std::vector<TokenId> EncodeText(const std::string& text,
                                const Tokenizer& tokenizer) {
  std::vector<TokenId> ids = tokenizer.Encode(text, SpecialTokens::kAsText);
  if (tokenizer.add_bos() && tokenizer.bos() &&
      (ids.empty() || ids.front() != *tokenizer.bos()))
    ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

StatusOr<std::vector<TokenId>> EncodeMessages(
    const std::vector<ChatMessage>& messages, const Tokenizer& tokenizer,
    const StatusOr<ChatTemplate>& chat, std::vector<std::string>* stops) {
  RETURN_IF_ERROR(chat.status());
  ASSIGN_OR_RETURN(const ChatPrompt prompt, chat->Render(messages));
  for (const std::string& stop : chat->stop()) {
    if (std::find(stops->begin(), stops->end(), stop) == stops->end())
      stops->push_back(stop);
  }
  return EncodeChatPrompt(prompt, tokenizer);
}

}  // namespace

Status EncodeBatchInput(const Tokenizer& tokenizer,
                        const StatusOr<ChatTemplate>& chat,
                        BatchRequest* request) {
  GenerateRequest& generate = request->request.generate;
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&request->input)) {
    RETURN_IF_ERROR(CheckIds(*ids, tokenizer));
    generate.prompt = *ids;
  } else if (const auto* text = std::get_if<std::string>(&request->input)) {
    generate.prompt = EncodeText(*text, tokenizer);
  } else {
    const auto& messages = std::get<std::vector<ChatMessage>>(request->input);
    ASSIGN_OR_RETURN(generate.prompt,
                     EncodeMessages(messages, tokenizer, chat, &generate.stop));
  }
  if (generate.prompt.empty()) {
    return absl::InvalidArgumentError(
        "the prompt is empty and this model adds no BOS token: expected at "
        "least one token, got none");
  }
  return absl::OkStatus();
}

}  // namespace coldstream
