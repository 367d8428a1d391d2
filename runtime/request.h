// What is asked of a model, and what comes of it.
#ifndef COLDSTREAM_RUNTIME_REQUEST_H_
#define COLDSTREAM_RUNTIME_REQUEST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/log_probabilities.h"
#include "runtime/pooling.h"
#include "runtime/sampler.h"
#include "runtime/tokenizer.h"

namespace coldstream {

struct GenerateRequest {
  std::vector<TokenId> prompt;  // BOS included if wanted; at least one token
  int64_t max_tokens = 128;     // -1: until the context is full
  SamplingOptions sampling;
  std::vector<std::string> stop;  // ends the text; not part of it
  bool ignore_end_of_generation = false;
};

enum class FinishReason {
  kEndOfGeneration,  // the model said so
  kStopString,
  kLength,  // max_tokens, or the context is full
};
const char* FinishReasonName(FinishReason reason);  // "stop", "stop", "length"

struct GenerateResult {
  std::vector<TokenId> tokens;  // end-of-generation token not included
  std::string text;
  FinishReason finish = FinishReason::kLength;
};

inline constexpr int kMostLogprobs = 100;

// One of many that an engine works on at once (Engine::Submit).
struct Request {
  GenerateRequest generate;
  // Scores of the tokens, with so many of the best ones beside each; 0 to
  // kMostLogprobs.
  std::optional<int> logprobs = std::nullopt;
  // Scores of the prompt's tokens too; with max_tokens 0 of them alone.
  bool echo = false;
  // One vector for the prompt in place of an answer: of `generate` the prompt
  // counts alone, and there are no scores.
  std::optional<EmbedOptions> embed = std::nullopt;
};

struct RequestResult {
  Status status;  // why it ended early; what was generated until then is there
  GenerateResult generated;
  // Of the prompt's second token and all behind it, and of what was generated.
  std::vector<TokenScore> prompt_scores;
  std::vector<TokenScore> generated_scores;
  std::vector<float> embedding;  // [hidden], of a request with `embed`
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  // whose keys and values were there already
  int64_t put_back = 0;  // times it had to make room and was computed again
  double queued_seconds = 0;  // until its first pass
  double seconds = 0;         // from Submit to the end
};

// Called on the engine's thread, which goes on when they return: a slow one
// slows the engine down. Of the engine they may call TrySubmit and Cancel,
// which do not wait. What on_text throws ends the request with Internal; what
// on_done throws is lost.
struct RequestCallbacks {
  // Text that may be shown: whole characters, no stop strings. False cancels
  // the request. May be empty.
  std::function<bool(std::string_view text)> on_text;
  // Once, after the last text.
  std::function<void(RequestResult result)> on_done;
};

using RequestId = uint64_t;

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_REQUEST_H_
