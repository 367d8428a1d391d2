/* Text and a vector from a model larger than the memory given to it, from C. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/coldstream.h"

int main(int argc, char** argv) {
  coldstream_options options;
  coldstream_request request;
  coldstream_embedding_request text;
  coldstream_engine engine;
  coldstream_error error;
  coldstream_result* result;
  const float* values;
  size_t count;
  if (argc != 3) return 2;

  coldstream_options_init(&options);
  options.ram_bytes = strtoull(argv[2], NULL, 10);
  if (coldstream_open(argv[1], &options, &engine, &error) != COLDSTREAM_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  coldstream_request_init(&request);
  request.prompt = "The capital of France is";
  request.max_tokens = 16;
  request.temperature = 0;
  if (coldstream_generate(engine, &request, &result, &error) != COLDSTREAM_OK)
    fprintf(stderr, "%s\n", error.message);
  printf("%s\n%zu tokens from C\n", coldstream_result_text(result),
         coldstream_result_token_count(result));
  coldstream_result_free(result);

  coldstream_embedding_request_init(&text);
  text.text = "Paris";
  if (coldstream_embed(engine, &text, &result, &error) == COLDSTREAM_OK &&
      coldstream_result_embedding(result, &values, &count, &error) ==
          COLDSTREAM_OK)
    printf("%zu numbers from C, the first is %g\n", count, values[0]);
  else
    fprintf(stderr, "%s\n", error.message);
  coldstream_result_free(result);
  return coldstream_close(engine, &error) == COLDSTREAM_OK ? 0 : 1;
}
