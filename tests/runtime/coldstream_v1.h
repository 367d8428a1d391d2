/* What version 1 of runtime/coldstream.h declared, as far as
 * coldstream_v1_program.c needs it: a program that was built then. Is not
 * changed with the header; that it differs is its point. */
#ifndef COLDSTREAM_TESTS_RUNTIME_COLDSTREAM_V1_H_
#define COLDSTREAM_TESTS_RUNTIME_COLDSTREAM_V1_H_

#include <stddef.h>
#include <stdint.h>

typedef enum coldstream_code {
  COLDSTREAM_OK = 0,
  COLDSTREAM_INVALID_HANDLE = 1,
  COLDSTREAM_INVALID_ARGUMENT = 2,
  COLDSTREAM_NOT_FOUND = 3,
  COLDSTREAM_RESOURCE_EXHAUSTED = 4,
  COLDSTREAM_FAILED_PRECONDITION = 5,
  COLDSTREAM_CANCELLED = 6,
  COLDSTREAM_UNAVAILABLE = 7,
  COLDSTREAM_DATA_LOSS = 8,
  COLDSTREAM_UNIMPLEMENTED = 9,
  COLDSTREAM_INTERNAL = 10
} coldstream_code;

typedef struct coldstream_error {
  coldstream_code code;
  char message[1024];
} coldstream_error;

typedef struct coldstream_engine {
  uint64_t id;
} coldstream_engine;

typedef struct coldstream_options {
  uint32_t size;
  const char* device;
  uint64_t ram_bytes;
  uint64_t vram_bytes;
  int32_t threads;
  int32_t prefetch_depth;
  int64_t context;
  int64_t batch_tokens;
  int64_t max_sequences;
  int64_t queue_length;
  int64_t kv_tokens;
} coldstream_options;

typedef struct coldstream_request {
  uint32_t size;
  const char* prompt;
  size_t prompt_bytes;
  const int32_t* tokens;
  size_t token_count;
  int32_t parse_special;
  int64_t max_tokens;
  double temperature;
  int64_t top_k;
  double top_p;
  double min_p;
  double repeat_penalty;
  int64_t repeat_last_n;
  uint64_t seed;
  const char* const* stop;
  size_t stop_count;
  int32_t ignore_eos;
  int32_t logprobs;
  int32_t echo;
} coldstream_request;

typedef struct coldstream_result coldstream_result;

typedef struct coldstream_callbacks {
  uint32_t size;
  int (*on_text)(const char* text, size_t bytes, void* user);
  void (*on_done)(coldstream_result* result, void* user);
  void* user;
} coldstream_callbacks;

typedef struct coldstream_stats {
  uint32_t size;
  int64_t submitted;
  int64_t waiting;
  int64_t running;
  int64_t finished;
  int64_t failed;
  int64_t passes;
  int64_t computed_tokens;
  int64_t generated_tokens;
  int64_t reused_tokens;
  uint64_t bytes_from_disk;
  uint64_t bytes_uploaded;
  double disk_busy_seconds;
  double compute_seconds;
  double stall_seconds;
} coldstream_stats;

void coldstream_options_init(coldstream_options* options);
void coldstream_request_init(coldstream_request* request);
void coldstream_callbacks_init(coldstream_callbacks* callbacks);
void coldstream_stats_init(coldstream_stats* stats);
coldstream_code coldstream_open(const char* path,
                                const coldstream_options* options,
                                coldstream_engine* engine,
                                coldstream_error* error);
coldstream_code coldstream_close(coldstream_engine engine,
                                 coldstream_error* error);
coldstream_code coldstream_submit(coldstream_engine engine,
                                  const coldstream_request* request,
                                  const coldstream_callbacks* callbacks,
                                  uint64_t* id, coldstream_error* error);
coldstream_code coldstream_drain(coldstream_engine engine,
                                 coldstream_error* error);
coldstream_code coldstream_get_stats(coldstream_engine engine,
                                     coldstream_stats* stats,
                                     coldstream_error* error);
const char* coldstream_result_text(const coldstream_result* result);
void coldstream_result_free(coldstream_result* result);

#endif /* COLDSTREAM_TESTS_RUNTIME_COLDSTREAM_V1_H_ */
