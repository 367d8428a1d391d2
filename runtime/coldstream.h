/* Coldstream for C and whatever speaks C.
 *
 *   coldstream_options options;
 *   coldstream_options_init(&options);
 *   options.ram_bytes = 2ull << 30;
 *   coldstream_engine engine;
 *   coldstream_error error;
 *   if (coldstream_open("model.gguf", &options, &engine, &error) != 0)
 *     fail(error.message);
 *   coldstream_request request;
 *   coldstream_request_init(&request);
 *   request.prompt = "The capital of France is";
 *   coldstream_result* result;
 *   if (coldstream_generate(engine, &request, &result, &error) == 0)
 *     puts(coldstream_result_text(result));
 *   coldstream_result_free(result);
 *   coldstream_embedding_request text;
 *   coldstream_embedding_request_init(&text);
 *   text.text = "Paris";
 *   const float* values;
 *   size_t count;
 *   if (coldstream_embed(engine, &text, &result, &error) == 0 &&
 *       coldstream_result_embedding(result, &values, &count, &error) == 0)
 *     store(values, count);
 *   coldstream_result_free(result);
 *   coldstream_close(engine, NULL);
 *
 * Every function that can fail returns a code, COLDSTREAM_OK (0) if all is
 * well, and describes a failure in *error unless that is NULL. Nothing aborts,
 * throws or prints. Handles are numbers that are never used twice: one that was
 * closed, or never opened, is COLDSTREAM_INVALID_HANDLE, not undefined
 * behaviour.
 *
 * Structs begin with their size, which *_init fills in with all defaults: a
 * program built against an older header keeps working, and what a newer header
 * has beyond is ignored. *_init are macros, so that it is the caller's size; a
 * language without them calls *_init_sized.
 *
 * Threads: every function may be called from any thread. Callbacks come on a
 * thread of the engine, which waits for them; in one, close, drain, generate
 * and embed are COLDSTREAM_FAILED_PRECONDITION.
 * Strings are UTF-8. Sizes are bytes. */
#ifndef COLDSTREAM_RUNTIME_COLDSTREAM_H_
#define COLDSTREAM_RUNTIME_COLDSTREAM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 2: embeddings. */
#define COLDSTREAM_API_VERSION 2

typedef enum coldstream_code {
  COLDSTREAM_OK = 0,
  COLDSTREAM_INVALID_HANDLE = 1,
  COLDSTREAM_INVALID_ARGUMENT = 2,
  COLDSTREAM_NOT_FOUND = 3,
  COLDSTREAM_RESOURCE_EXHAUSTED = 4, /* memory; a full queue */
  /* A changed model file; the wrong kind of result; see Threads. */
  COLDSTREAM_FAILED_PRECONDITION = 5,
  COLDSTREAM_CANCELLED = 6,
  COLDSTREAM_UNAVAILABLE = 7, /* a device or I/O backend that is not there */
  COLDSTREAM_DATA_LOSS = 8,   /* a damaged or unreadable file */
  COLDSTREAM_UNIMPLEMENTED = 9,
  COLDSTREAM_INTERNAL = 10
} coldstream_code;

typedef struct coldstream_error {
  coldstream_code code;
  char message[1024]; /* one line, cut short if longer */
} coldstream_error;

typedef struct coldstream_engine {
  uint64_t id;
} coldstream_engine;

typedef struct coldstream_options {
  uint32_t size;
  const char* device;     /* "auto", "cpu" or "cuda"; NULL: "auto" */
  uint64_t ram_bytes;     /* cap of the process; 0: what is free */
  uint64_t vram_bytes;    /* cap on the device; 0: what is free */
  int32_t threads;        /* 0: what the process may use */
  int32_t prefetch_depth; /* 0: automatic */
  int64_t context;        /* most tokens of a request; 0: the engine's choice */
  int64_t batch_tokens;   /* most tokens of a pass */
  int64_t max_sequences;  /* requests worked on at once */
  int64_t queue_length;   /* requests that may wait */
  int64_t kv_tokens;      /* positions of all requests; 0: room for all */
  const char* kv_type;    /* of those: "f16" or "q8_0"; NULL: "f16" */
} coldstream_options;

typedef struct coldstream_request {
  uint32_t size;
  const char* prompt;    /* text, or NULL: tokens */
  size_t prompt_bytes;   /* of prompt; 0: up to its NUL */
  const int32_t* tokens; /* used as they are */
  size_t token_count;
  int32_t parse_special; /* control tokens written in the text count as such */
  int64_t max_tokens;    /* -1: until the context is full */
  double temperature;    /* 0: greedy */
  int64_t top_k;         /* 0: all */
  double top_p;          /* 1: off */
  double min_p;          /* 0: off */
  double repeat_penalty; /* 1: off */
  int64_t repeat_last_n; /* -1: all */
  uint64_t seed;
  const char* const* stop; /* texts that end the answer */
  size_t stop_count;
  int32_t ignore_eos;
  int32_t logprobs; /* -1: no scores; n: with the n best beside each */
  int32_t echo;     /* with logprobs: scores of the prompt too */
} coldstream_request;

/* How the hidden states of a text's tokens become one vector. */
typedef enum coldstream_pooling {
  COLDSTREAM_POOLING_MODEL = 0, /* what the model's file says, else the mean */
  COLDSTREAM_POOLING_MEAN = 1,
  COLDSTREAM_POOLING_LAST = 2, /* the last token's */
  COLDSTREAM_POOLING_CLS = 3   /* the first token's */
} coldstream_pooling;

typedef struct coldstream_embedding_request {
  uint32_t size;
  int32_t pooling;       /* a coldstream_pooling */
  const char* text;      /* or NULL: tokens */
  size_t text_bytes;     /* of text; 0: up to its NUL */
  const int32_t* tokens; /* used as they are */
  size_t token_count;
  int32_t parse_special; /* control tokens written in the text count as such */
  int32_t normalize;     /* divided by its L2 norm (the default); 0: as it is */
} coldstream_embedding_request;

/* What came of a request; owned by whoever got it. */
typedef struct coldstream_result coldstream_result;

typedef struct coldstream_callbacks {
  uint32_t size;
  /* Whole characters as they come, not NUL-terminated. A return other than 0
   * cancels the request. May be NULL. */
  int (*on_text)(const char* text, size_t bytes, void* user);
  /* Once, at the end; the result is the callee's to free. */
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

/* "0.1.0". */
const char* coldstream_version(void);

/* Fill in a struct of `size` bytes, whatever header it is from. NULL is left
 * alone. */
void coldstream_options_init_sized(coldstream_options* options, size_t size);
void coldstream_request_init_sized(coldstream_request* request, size_t size);
void coldstream_embedding_request_init_sized(
    coldstream_embedding_request* request, size_t size);
void coldstream_callbacks_init_sized(coldstream_callbacks* callbacks,
                                     size_t size);
void coldstream_stats_init_sized(coldstream_stats* stats, size_t size);

#define coldstream_options_init(options) \
  coldstream_options_init_sized((options), sizeof(*(options)))
#define coldstream_request_init(request) \
  coldstream_request_init_sized((request), sizeof(*(request)))
#define coldstream_embedding_request_init(request) \
  coldstream_embedding_request_init_sized((request), sizeof(*(request)))
#define coldstream_callbacks_init(callbacks) \
  coldstream_callbacks_init_sized((callbacks), sizeof(*(callbacks)))
#define coldstream_stats_init(stats) \
  coldstream_stats_init_sized((stats), sizeof(*(stats)))

/* For programs built against version 1: they fill in the fields it had. */
void(coldstream_options_init)(coldstream_options* options);
void(coldstream_request_init)(coldstream_request* request);
void(coldstream_callbacks_init)(coldstream_callbacks* callbacks);
void(coldstream_stats_init)(coldstream_stats* stats);

/* `options` may be NULL. */
coldstream_code coldstream_open(const char* path,
                                const coldstream_options* options,
                                coldstream_engine* engine,
                                coldstream_error* error);
/* Ends what is under way with COLDSTREAM_CANCELLED and waits for it. */
coldstream_code coldstream_close(coldstream_engine engine,
                                 coldstream_error* error);
/* One line each that is worth showing; "" past the last. Valid until close. */
const char* coldstream_warning(coldstream_engine engine, size_t index);

/* Ids of text, without what is put before a prompt. *count: how many there are;
 * no more than `capacity` are written. */
coldstream_code coldstream_tokenize(coldstream_engine engine, const char* text,
                                    size_t bytes, int32_t parse_special,
                                    int32_t* tokens, size_t capacity,
                                    size_t* count, coldstream_error* error);

/* Waits while the queue is full; in a callback that is
 * COLDSTREAM_RESOURCE_EXHAUSTED. *id may be NULL. What the request points to is
 * copied. */
coldstream_code coldstream_submit(coldstream_engine engine,
                                  const coldstream_request* request,
                                  const coldstream_callbacks* callbacks,
                                  uint64_t* id, coldstream_error* error);
coldstream_code coldstream_cancel(coldstream_engine engine, uint64_t id,
                                  coldstream_error* error);
/* Waits until everything submitted so far has ended. */
coldstream_code coldstream_drain(coldstream_engine engine,
                                 coldstream_error* error);
/* Submits and waits. The code is the result's, and *result is there for every
 * request that was taken, else NULL. */
coldstream_code coldstream_generate(coldstream_engine engine,
                                    const coldstream_request* request,
                                    coldstream_result** result,
                                    coldstream_error* error);
/* As coldstream_submit and coldstream_generate, for one vector in place of an
 * answer; on_text is not called. */
coldstream_code coldstream_submit_embedding(
    coldstream_engine engine, const coldstream_embedding_request* request,
    const coldstream_callbacks* callbacks, uint64_t* id,
    coldstream_error* error);
coldstream_code coldstream_embed(coldstream_engine engine,
                                 const coldstream_embedding_request* request,
                                 coldstream_result** result,
                                 coldstream_error* error);
coldstream_code coldstream_get_stats(coldstream_engine engine,
                                     coldstream_stats* stats,
                                     coldstream_error* error);

/* Of a NULL result: an error, "", 0. Pointers are valid until it is freed. An
 * embedding has no text, finish, tokens and scores: "", 0. */
coldstream_code coldstream_result_code(const coldstream_result* result);
const char* coldstream_result_message(const coldstream_result* result);
const char* coldstream_result_text(const coldstream_result* result);
size_t coldstream_result_text_bytes(const coldstream_result* result);
/* "stop" or "length". */
const char* coldstream_result_finish(const coldstream_result* result);
size_t coldstream_result_prompt_tokens(const coldstream_result* result);
size_t coldstream_result_token_count(const coldstream_result* result);
int32_t coldstream_result_token(const coldstream_result* result, size_t index);
/* Scores: of the prompt's second token and all behind it (with echo), then of
 * the generated ones. `best` 0 is the token itself, 1 the best one, ... */
size_t coldstream_result_score_count(const coldstream_result* result);
coldstream_code coldstream_result_score(const coldstream_result* result,
                                        size_t index, size_t best,
                                        int32_t* token, double* logprob);
/* The vector: as many floats as the model's hidden states have. Of a request
 * that failed its error; of a text COLDSTREAM_FAILED_PRECONDITION. */
coldstream_code coldstream_result_embedding(const coldstream_result* result,
                                            const float** values, size_t* count,
                                            coldstream_error* error);
void coldstream_result_free(coldstream_result* result); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif /* COLDSTREAM_RUNTIME_COLDSTREAM_H_ */
