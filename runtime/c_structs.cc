#include "runtime/c_structs.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/prompt_tokens.h"

namespace coldstream {
namespace {

// A text, up to its NUL if `bytes` is 0, or tokens as they are.
StatusOr<std::vector<TokenId>> IdsOf(const char* text, size_t bytes,
                                     bool parse_special, const int32_t* tokens,
                                     size_t token_count,
                                     const Tokenizer& tokenizer) {
  if (text != nullptr) {
    return PromptTokens(
        tokenizer,
        bytes > 0 ? std::string_view(text, bytes) : std::string_view(text),
        parse_special ? SpecialTokens::kParse : SpecialTokens::kAsText);
  }
  if (tokens == nullptr)
    return absl::InvalidArgumentError("request: neither text nor tokens");
  return std::vector<TokenId>(tokens, tokens + token_count);
}

StatusOr<std::optional<Pooling>> PoolingOf(int32_t pooling) {
  switch (pooling) {
    case COLDSTREAM_POOLING_MODEL:
      return std::optional<Pooling>();
    case COLDSTREAM_POOLING_MEAN:
      return std::optional(Pooling::kMean);
    case COLDSTREAM_POOLING_LAST:
      return std::optional(Pooling::kLast);
    case COLDSTREAM_POOLING_CLS:
      return std::optional(Pooling::kCls);
    default:
      return absl::InvalidArgumentError(absl::StrFormat(
          "pooling: expected a coldstream_pooling, got %d", pooling));
  }
}

}  // namespace

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
  if (options.kv_type != nullptr) {
    ASSIGN_OR_RETURN(own.engine.kv_type, ParseKvType(options.kv_type));
  }
  return own;
}

StatusOr<Request> RequestOf(const coldstream_request& request,
                            const Tokenizer& tokenizer) {
  Request own;
  GenerateRequest& generate = own.generate;
  ASSIGN_OR_RETURN(
      generate.prompt,
      IdsOf(request.prompt, request.prompt_bytes, request.parse_special != 0,
            request.tokens, request.token_count, tokenizer));
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

StatusOr<Request> EmbeddingRequestOf(
    const coldstream_embedding_request& request, const Tokenizer& tokenizer) {
  Request own;
  ASSIGN_OR_RETURN(
      own.generate.prompt,
      IdsOf(request.text, request.text_bytes, request.parse_special != 0,
            request.tokens, request.token_count, tokenizer));
  EmbedOptions& embed = own.embed.emplace();
  ASSIGN_OR_RETURN(embed.pooling, PoolingOf(request.pooling));
  embed.length =
      request.normalize != 0 ? VectorLength::kOne : VectorLength::kAsItIs;
  return own;
}

}  // namespace coldstream
