/* A program built against version 1: its structs, its functions. */
#include <stdio.h>
#include <string.h>

#include "tests/runtime/coldstream_v1.h"

enum { kGuardBytes = 256, kGuard = 0xA5 };

/* What stands behind a struct is not the library's. */
static struct {
  coldstream_options options;
  unsigned char behind_options[kGuardBytes];
  coldstream_request request;
  unsigned char behind_request[kGuardBytes];
  coldstream_callbacks callbacks;
  unsigned char behind_callbacks[kGuardBytes];
  coldstream_stats stats;
  unsigned char behind_stats[kGuardBytes];
} memory;

struct answer {
  char* text;
  size_t capacity;
};

static int untouched(const unsigned char* guard) {
  int i;
  for (i = 0; i < kGuardBytes; ++i)
    if (guard[i] != kGuard) return 0;
  return 1;
}

static void keep_text(coldstream_result* result, void* user) {
  const struct answer* answer = user;
  snprintf(answer->text, answer->capacity, "%s",
           coldstream_result_text(result));
  coldstream_result_free(result);
}

/* The greedy answer to "Hello"; what went wrong, or NULL. */
const char* generate_with_version_1(const char* path, char* text,
                                    size_t capacity);

const char* generate_with_version_1(const char* path, char* text,
                                    size_t capacity) {
  struct answer answer;
  coldstream_engine engine;
  answer.text = text;
  answer.capacity = capacity;
  memset(&memory, kGuard, sizeof(memory));
  coldstream_options_init(&memory.options);
  coldstream_request_init(&memory.request);
  coldstream_callbacks_init(&memory.callbacks);
  coldstream_stats_init(&memory.stats);
  memory.options.device = "cpu";
  memory.options.ram_bytes = 1u << 30;
  memory.options.context = 200;
  memory.request.prompt = "Hello";
  memory.request.max_tokens = 7;
  memory.request.temperature = 0;
  memory.request.ignore_eos = 1;
  memory.callbacks.on_done = keep_text;
  memory.callbacks.user = &answer;
  if (coldstream_open(path, &memory.options, &engine, NULL) != COLDSTREAM_OK)
    return "open";
  if (coldstream_submit(engine, &memory.request, &memory.callbacks, NULL,
                        NULL) != COLDSTREAM_OK)
    return "submit";
  if (coldstream_drain(engine, NULL) != COLDSTREAM_OK) return "drain";
  if (coldstream_get_stats(engine, &memory.stats, NULL) != COLDSTREAM_OK)
    return "get_stats";
  if (memory.stats.finished != 1 || memory.stats.generated_tokens != 7 ||
      memory.stats.stall_seconds < 0)
    return "the statistics";
  if (coldstream_close(engine, NULL) != COLDSTREAM_OK) return "close";
  if (!untouched(memory.behind_options)) return "behind the options";
  if (!untouched(memory.behind_request)) return "behind the request";
  if (!untouched(memory.behind_callbacks)) return "behind the callbacks";
  if (!untouched(memory.behind_stats)) return "behind the statistics";
  return NULL;
}
