// A line of a batch file in OpenAI's format, checked and ready to be computed.
//
//   {"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions",
//    "body": {"model": "m", "messages": [...], "max_tokens": 100}}
//
// Every option of the body is either obeyed, or one that says nothing about the
// answer (user, metadata, store, service_tier), or at a value at which it does
// nothing (n 1, presence_penalty 0); any other makes the line an error that
// names it. Beyond OpenAI's: top_k, min_p, repetition_penalty, ignore_eos, and
// for embeddings pooling. body.model may be any name or missing: a job has one
// model.
// Defaults are OpenAI's: temperature 1 without truncation; 16 tokens for a
// completion, and for a chat as many as the context holds. Without a seed one
// is made of the custom_id, so that an answer depends on its request alone.
// Source: OpenAI API reference, "Batch", "Completions", "Chat", "Embeddings".
#ifndef COLDSTREAM_TOOLS_BATCH_REQUEST_H_
#define COLDSTREAM_TOOLS_BATCH_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/chat_template.h"
#include "runtime/request.h"
#include "runtime/tokenizer.h"
#include "tools/batch_embedding.h"
#include "tools/batch_error.h"

namespace coldstream {

enum class BatchEndpoint { kCompletions, kChatCompletions, kEmbeddings };
const char* BatchUrl(BatchEndpoint endpoint);  // "/v1/completions", ...

inline constexpr size_t kMostStops = 4;
inline constexpr size_t kLongestCustomId = 512;  // bytes
inline constexpr int64_t kCompletionTokens = 16;

struct BatchRequest {
  BatchEndpoint endpoint = BatchEndpoint::kCompletions;
  std::string model = {};  // as the line has it; may be empty
  std::variant<std::string, std::vector<TokenId>, std::vector<ChatMessage>>
      input = {};
  // The options; its prompt is filled in by EncodeBatchInput
  // (batch_encoding.h).
  Request request = {};
  BatchEmbedding embedding = {};  // in place of both for that endpoint
};

struct BatchLine {
  std::string custom_id;  // empty where it could not be read
  BatchRequest request;   // if there is no error
  std::optional<BatchError> error;
};

// `seed`: goes into the seeds of requests that have none.
BatchLine ParseBatchLine(std::string_view line, uint64_t seed);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_REQUEST_H_
