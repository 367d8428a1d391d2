// The structs of coldstream.h with their defaults.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/coldstream.h"
#include "runtime/engine.h"
#include "runtime/request.h"

namespace {

// The part that a caller's struct of `size` bytes has; behind it zeros.
template <typename Struct>
void FillIn(Struct defaults, Struct* given, size_t size) {
  if (given == nullptr || size < sizeof(defaults.size)) return;
  defaults.size = static_cast<uint32_t>(size);
  void* const bytes = given;
  std::memset(bytes, 0, size);
  std::memcpy(bytes, &defaults, std::min(size, sizeof(defaults)));
}

// How far the structs went in version 1. Programs of that time have padding
// behind the last field of coldstream_request, with anything in it: the next
// field begins after that.
constexpr size_t kOptionsV1 =
    offsetof(coldstream_options, kv_tokens) + sizeof(int64_t);
constexpr size_t kRequestV1 =
    offsetof(coldstream_request, echo) + sizeof(int32_t);
constexpr size_t kCallbacksV1 =
    offsetof(coldstream_callbacks, user) + sizeof(void*);
constexpr size_t kStatsV1 =
    offsetof(coldstream_stats, stall_seconds) + sizeof(double);

}  // namespace

void coldstream_options_init_sized(coldstream_options* options, size_t size) {
  const coldstream::EngineOptions defaults;
  coldstream_options own = {};
  own.batch_tokens = defaults.batch_tokens;
  own.max_sequences = 8;
  own.queue_length = defaults.queue_length;
  FillIn(own, options, size);
}

void coldstream_request_init_sized(coldstream_request* request, size_t size) {
  const coldstream::GenerateRequest defaults;
  coldstream_request own = {};
  own.max_tokens = defaults.max_tokens;
  own.temperature = defaults.sampling.temperature;
  own.top_k = defaults.sampling.top_k;
  own.top_p = defaults.sampling.top_p;
  own.min_p = defaults.sampling.min_p;
  own.repeat_penalty = defaults.sampling.repeat_penalty;
  own.repeat_last_n = defaults.sampling.repeat_last_n;
  own.logprobs = -1;
  FillIn(own, request, size);
}

void coldstream_embedding_request_init_sized(
    coldstream_embedding_request* request, size_t size) {
  coldstream_embedding_request own = {};
  own.pooling = COLDSTREAM_POOLING_MODEL;
  own.normalize = 1;
  FillIn(own, request, size);
}

void coldstream_callbacks_init_sized(coldstream_callbacks* callbacks,
                                     size_t size) {
  FillIn(coldstream_callbacks(), callbacks, size);
}

void coldstream_stats_init_sized(coldstream_stats* stats, size_t size) {
  FillIn(coldstream_stats(), stats, size);
}

void(coldstream_options_init)(coldstream_options* options) {
  coldstream_options_init_sized(options, kOptionsV1);
}

void(coldstream_request_init)(coldstream_request* request) {
  coldstream_request_init_sized(request, kRequestV1);
}

void(coldstream_callbacks_init)(coldstream_callbacks* callbacks) {
  coldstream_callbacks_init_sized(callbacks, kCallbacksV1);
}

void(coldstream_stats_init)(coldstream_stats* stats) {
  coldstream_stats_init_sized(stats, kStatsV1);
}
