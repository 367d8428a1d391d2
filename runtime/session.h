// A sequence of tokens with its keys and values: evaluate, or generate text.
#ifndef COLDSTREAM_RUNTIME_SESSION_H_
#define COLDSTREAM_RUNTIME_SESSION_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graphs/kv_cache.h"
#include "runtime/engine.h"
#include "runtime/request.h"
#include "runtime/tokenizer.h"

namespace coldstream {

// Wall-clock of the latest Evaluate or Generate, complete or not.
struct SessionTimes {
  int64_t prompt_tokens = 0;
  double prompt_seconds = 0;  // until the first token could be sampled
  int64_t generated_tokens = 0;
  double generation_seconds = 0;  // from the first token to the last
  EngineStats generation;         // of the engine over that time
};

class Session {
 public:
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Called with text that may be shown: whole characters, no stop strings.
  using TextSink = std::function<void(std::string_view text)>;
  // index: of the token within this Evaluate; logits: [vocab_rows], the
  // prediction after that token, valid during the call. An error ends Evaluate.
  using LogitsSink =
      std::function<Status(int64_t index, std::span<const float> logits)>;

  // Feeds the prompt in passes of up to batch_tokens, then samples token by
  // token. Errors: InvalidArgument (empty prompt; prompt longer than the
  // context, with both numbers; sampling options), Cancelled (the text so far
  // has been given to on_text), Internal (logits not finite), the reader's,
  // FailedPrecondition (a model file changed).
  StatusOr<GenerateResult> Generate(const GenerateRequest& request,
                                    const TextSink& on_text);

  // Appends tokens, `chunk` a pass, and hands over the logits of every one (or
  // of the last alone). Errors as Generate; chunk must be in 1..batch_tokens,
  // and within logit_rows if all are wanted.
  enum class Logits { kAll, kLast };
  Status Evaluate(std::span<const TokenId> tokens, int64_t chunk, Logits which,
                  const LogitsSink& on_logits);

  int64_t length() const;  // tokens evaluated so far
  const SessionTimes& times() const { return times_; }

  // Forgets everything; the positions go back to the engine.
  void Reset();

 private:
  friend class Engine;
  explicit Session(EngineCore* core);
  Status CheckRoom(int64_t tokens) const;

  EngineCore* core_;
  KvSequence sequence_;
  SessionTimes times_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SESSION_H_
