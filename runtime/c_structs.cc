#include "runtime/c_structs.h"

#include <string>
#include <string_view>

#include "runtime/prompt_tokens.h"

namespace coldstream {

StatusOr<CEngineOptions> EngineOptionsOf(const coldstream_options& options) {
  CEngineOptions own;
  const std::string_view device =
      options.device != nullptr ? options.device : "auto";
  if (device == "cpu") {
    own.device = DeviceChoice::kCpu;
  } else if (device == "cuda") {
    own.device = DeviceChoice::kCuda;
  } else if (device != "auto") {
    return absl::InvalidArgumentError(absl::StrFormat(
        "device: expected auto, cpu or cuda, got \"%s\"", device));
  }
  own.engine.ram_bytes = options.ram_bytes;
  own.engine.vram_bytes = options.vram_bytes;
  own.engine.threads = options.threads;
  own.engine.prefetch_depth = options.prefetch_depth;
  own.engine.context = options.context;
  own.engine.batch_tokens = options.batch_tokens;
  own.engine.max_sequences = options.max_sequences;
  own.engine.queue_length = options.queue_length;
  own.engine.kv_tokens = options.kv_tokens;
  return own;
}

StatusOr<Request> RequestOf(const coldstream_request& request,
                            const Tokenizer& tokenizer) {
  Request own;
  GenerateRequest& generate = own.generate;
  if (request.prompt != nullptr) {
    const std::string_view text =
        request.prompt_bytes > 0
            ? std::string_view(request.prompt, request.prompt_bytes)
            : std::string_view(request.prompt);
    generate.prompt =
        PromptTokens(tokenizer, text,
                     request.parse_special != 0 ? SpecialTokens::kParse
                                                : SpecialTokens::kAsText);
  } else if (request.tokens != nullptr) {
    generate.prompt.assign(request.tokens,
                           request.tokens + request.token_count);
  } else {
    return absl::InvalidArgumentError("request: neither prompt nor tokens");
  }
  generate.max_tokens = request.max_tokens;
  generate.sampling = {.temperature = request.temperature,
                       .top_k = request.top_k,
                       .top_p = request.top_p,
                       .min_p = request.min_p,
                       .repeat_penalty = request.repeat_penalty,
                       .repeat_last_n = request.repeat_last_n,
                       .seed = request.seed};
  if (request.stop == nullptr && request.stop_count > 0)
    return absl::InvalidArgumentError("request: stop is NULL");
  for (size_t i = 0; i < request.stop_count; ++i) {
    if (request.stop[i] == nullptr)
      return absl::InvalidArgumentError("request: a stop text is NULL");
    generate.stop.emplace_back(request.stop[i]);
  }
  generate.ignore_end_of_generation = request.ignore_eos != 0;
  if (request.logprobs >= 0) own.logprobs = request.logprobs;
  own.echo = request.echo != 0;
  return own;
}

coldstream_code CodeOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return COLDSTREAM_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return COLDSTREAM_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return COLDSTREAM_NOT_FOUND;
    case absl::StatusCode::kResourceExhausted:
      return COLDSTREAM_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kFailedPrecondition:
      return COLDSTREAM_FAILED_PRECONDITION;
    case absl::StatusCode::kCancelled:
      return COLDSTREAM_CANCELLED;
    case absl::StatusCode::kUnavailable:
      return COLDSTREAM_UNAVAILABLE;
    case absl::StatusCode::kDataLoss:
      return COLDSTREAM_DATA_LOSS;
    case absl::StatusCode::kUnimplemented:
      return COLDSTREAM_UNIMPLEMENTED;
    default:
      return COLDSTREAM_INTERNAL;
  }
}

}  // namespace coldstream
