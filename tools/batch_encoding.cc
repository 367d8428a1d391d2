#include "tools/batch_encoding.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/prompt_tokens.h"

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
    generate.prompt = PromptTokens(tokenizer, *text, SpecialTokens::kAsText);
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

StatusOr<std::vector<Request>> EncodeBatchEmbedding(
    const Tokenizer& tokenizer, std::optional<Pooling> pooling,
    const BatchEmbedding& embedding) {
  std::vector<Request> requests;
  for (const auto& input : embedding.inputs) {
    Request& request = requests.emplace_back();
    request.embed = EmbedOptions{
        .pooling = embedding.pooling ? embedding.pooling : pooling};
    std::vector<TokenId>& prompt = request.generate.prompt;
    Status status;
    if (const auto* ids = std::get_if<std::vector<TokenId>>(&input)) {
      prompt = *ids;
      status = CheckIds(prompt, tokenizer);
    } else {
      prompt = EmbeddingTokens(tokenizer, std::get<std::string>(input),
                               SpecialTokens::kAsText);
      if (prompt.empty())
        status = absl::InvalidArgumentError(
            "the text is empty: expected at least one token, got none");
    }
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "input %d: %s", requests.size() - 1, MessageOf(status)));
  }
  return requests;
}

}  // namespace coldstream
