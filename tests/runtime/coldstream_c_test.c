/* The header is C: what it declares can be used from there. */
#include "runtime/coldstream.h"

/* Generates from `path`; the answer's length in tokens, or -1. */
long generate_in_c(const char* path, coldstream_error* error);

long generate_in_c(const char* path, coldstream_error* error) {
  coldstream_options options;
  coldstream_request request;
  coldstream_engine engine;
  coldstream_result* result = NULL;
  long tokens = -1;
  coldstream_options_init(&options);
  options.ram_bytes = 1u << 30;
  options.context = 64;
  options.batch_tokens = 16;
  options.max_sequences = 2;
  if (coldstream_open(path, &options, &engine, error) != COLDSTREAM_OK)
    return -1;
  coldstream_request_init(&request);
  request.prompt = "Hello";
  request.max_tokens = 7;
  request.ignore_eos = 1;
  if (coldstream_generate(engine, &request, &result, error) == COLDSTREAM_OK)
    tokens = (long)coldstream_result_token_count(result);
  coldstream_result_free(result);
  if (coldstream_close(engine, error) != COLDSTREAM_OK) return -1;
  return tokens;
}
