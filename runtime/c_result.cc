#include "runtime/c_result.h"

#include <string>
#include <utility>

#include "runtime/c_error.h"

struct coldstream_result {
  coldstream::RequestResult own;
  std::string message;
  coldstream::CResultKind kind;
};

namespace coldstream {
namespace {

// The scores of the prompt, then those of the answer.
const TokenScore* ScoreAt(const coldstream_result* result, size_t index) {
  if (result == nullptr) return nullptr;
  const auto& prompt = result->own.prompt_scores;
  const auto& generated = result->own.generated_scores;
  if (index < prompt.size()) return &prompt[index];
  index -= prompt.size();
  return index < generated.size() ? &generated[index] : nullptr;
}

}  // namespace

CResultKind KindOf(const Request& request) {
  return request.embed ? CResultKind::kEmbedding : CResultKind::kText;
}

coldstream_result* NewCResult(RequestResult result, CResultKind kind) {
  std::string message = result.status.ok() ? "" : MessageOf(result.status);
  return new coldstream_result{std::move(result), std::move(message), kind};
}

}  // namespace coldstream

coldstream_code coldstream_result_code(const coldstream_result* result) {
  return result == nullptr ? COLDSTREAM_INVALID_ARGUMENT
                           : coldstream::CodeOf(result->own.status);
}

const char* coldstream_result_message(const coldstream_result* result) {
  return result == nullptr ? "there is no result" : result->message.c_str();
}

const char* coldstream_result_text(const coldstream_result* result) {
  return result == nullptr ? "" : result->own.generated.text.c_str();
}

size_t coldstream_result_text_bytes(const coldstream_result* result) {
  return result == nullptr ? 0 : result->own.generated.text.size();
}

const char* coldstream_result_finish(const coldstream_result* result) {
  if (result == nullptr || result->kind != coldstream::CResultKind::kText)
    return "";
  return coldstream::FinishReasonName(result->own.generated.finish);
}

size_t coldstream_result_prompt_tokens(const coldstream_result* result) {
  return result == nullptr ? 0 : static_cast<size_t>(result->own.prompt_tokens);
}

size_t coldstream_result_token_count(const coldstream_result* result) {
  return result == nullptr ? 0 : result->own.generated.tokens.size();
}

int32_t coldstream_result_token(const coldstream_result* result, size_t index) {
  return index < coldstream_result_token_count(result)
             ? result->own.generated.tokens[index]
             : -1;
}

size_t coldstream_result_score_count(const coldstream_result* result) {
  if (result == nullptr) return 0;
  return result->own.prompt_scores.size() + result->own.generated_scores.size();
}

coldstream_code coldstream_result_score(const coldstream_result* result,
                                        size_t index, size_t best,
                                        int32_t* token, double* logprob) {
  const coldstream::TokenScore* const score =
      coldstream::ScoreAt(result, index);
  if (score == nullptr || best > score->best.size() || token == nullptr ||
      logprob == nullptr)
    return COLDSTREAM_INVALID_ARGUMENT;
  const coldstream::TokenProbability& found =
      best == 0 ? score->token : score->best[best - 1];
  *token = found.id;
  *logprob = found.log_probability;
  return COLDSTREAM_OK;
}

coldstream_code coldstream_result_embedding(const coldstream_result* result,
                                            const float** values, size_t* count,
                                            coldstream_error* error) {
  using coldstream::Report;
  if (values != nullptr) *values = nullptr;
  if (count != nullptr) *count = 0;
  if (result == nullptr || values == nullptr || count == nullptr) {
    return Report(COLDSTREAM_INVALID_ARGUMENT,
                  "result_embedding: result, values or count is NULL", error);
  }
  if (result->kind != coldstream::CResultKind::kEmbedding) {
    return Report(COLDSTREAM_FAILED_PRECONDITION,
                  "the result is of a text: coldstream_embed gives embeddings",
                  error);
  }
  const coldstream::RequestResult& own = result->own;
  if (own.status.ok()) {
    *values = own.embedding.data();
    *count = own.embedding.size();
  }
  return Report(own.status, error);
}

void coldstream_result_free(coldstream_result* result) { delete result; }
