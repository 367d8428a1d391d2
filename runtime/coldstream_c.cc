// The functions of coldstream.h that have to do with engines; c_init.cc has
// those of structs, c_result.cc those of results.
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "runtime/c_error.h"
#include "runtime/c_handles.h"
#include "runtime/c_result.h"
#include "runtime/c_structs.h"
#include "runtime/coldstream.h"
#include "runtime/model.h"

namespace coldstream {
namespace {

// In a callback: what would wait for the engine's thread is refused.
thread_local bool in_callback = false;

class CallbackScope {
 public:
  CallbackScope() { in_callback = true; }
  ~CallbackScope() { in_callback = false; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
};

// Runs `body`, which returns a Status; nothing it throws goes further.
template <typename Body>
coldstream_code Guarded(coldstream_error* error, const Body& body) noexcept {
  try {
    return Report(body(), error);
  } catch (const std::bad_alloc&) {
    return Report(COLDSTREAM_RESOURCE_EXHAUSTED, "out of memory", error);
  } catch (const std::exception& exception) {
    return Report(COLDSTREAM_INTERNAL, exception.what(), error);
  } catch (...) {
    return Report(COLDSTREAM_INTERNAL, "an unknown exception", error);
  }
}

// The same with the engine behind a handle: body(OpenEngine&).
template <typename Body>
coldstream_code WithEngine(coldstream_engine handle, coldstream_error* error,
                           const Body& body) noexcept {
  const std::shared_ptr<OpenEngine> open = CHandles::Instance().Find(handle.id);
  if (open == nullptr) {
    return Report(COLDSTREAM_INVALID_HANDLE,
                  "the engine was closed, or never opened", error);
  }
  return Guarded(error, [&] { return body(*open); });
}

Status RefuseInCallback(const char* function) {
  if (!in_callback) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s would wait for the callback that it is called in", function));
}

Status Open(const char* path, const coldstream_options* given,
            coldstream_engine* engine) {
  if (path == nullptr || engine == nullptr)
    return absl::InvalidArgumentError("open: path or engine is NULL");
  ASSIGN_OR_RETURN(
      const coldstream_options options,
      FromCaller(given, &coldstream_options_init_sized, "options"));
  ASSIGN_OR_RETURN(CEngineOptions own, EngineOptionsOf(options));
  ASSIGN_OR_RETURN(auto model, Model::Open({.path = path}));
  ASSIGN_OR_RETURN(OpenedDevice device, OpenComputeDevice(own.device));
  own.engine.gpu = std::move(device.gpu);
  own.engine.device_fallback = device.fallback;
  auto open = std::make_shared<OpenEngine>();
  ASSIGN_OR_RETURN(open->engine, Engine::Create(std::move(model), own.engine));
  if (device.unexpected) open->warnings.push_back(device.fallback);
  for (std::string& line : open->engine->warnings())
    open->warnings.push_back(std::move(line));
  engine->id = CHandles::Instance().Add(std::move(open));
  return absl::OkStatus();
}

// A request that C made, as ours.
template <typename CRequest>
StatusOr<Request> Converted(const OpenEngine& open, const CRequest* given,
                            void (*init)(CRequest*, size_t), const char* name,
                            StatusOr<Request> (*convert)(const CRequest&,
                                                         const Tokenizer&)) {
  if (given == nullptr)
    return absl::InvalidArgumentError("the request is NULL");
  ASSIGN_OR_RETURN(const CRequest request, FromCaller(given, init, name));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer,
                   open.engine->model().tokenizer());
  return convert(request, *tokenizer);
}

StatusOr<Request> Own(const OpenEngine& open, const coldstream_request* given) {
  return Converted(open, given, &coldstream_request_init_sized, "request",
                   &RequestOf);
}

StatusOr<Request> Own(const OpenEngine& open,
                      const coldstream_embedding_request* given) {
  return Converted(open, given, &coldstream_embedding_request_init_sized,
                   "embedding_request", &EmbeddingRequestOf);
}

// What the engine calls, for a C caller's callbacks.
RequestCallbacks CallbacksOf(const coldstream_callbacks& callbacks,
                             CResultKind kind) {
  RequestCallbacks own;
  if (callbacks.on_text != nullptr) {
    own.on_text = [callbacks](std::string_view text) {
      const CallbackScope scope;
      return callbacks.on_text(text.data(), text.size(), callbacks.user) == 0;
    };
  }
  own.on_done = [callbacks, kind](RequestResult result) {
    const CallbackScope scope;
    if (callbacks.on_done != nullptr)
      callbacks.on_done(NewCResult(std::move(result), kind), callbacks.user);
  };
  return own;
}

Status Submit(OpenEngine& open, Request request,
              const coldstream_callbacks* given, uint64_t* id) {
  ASSIGN_OR_RETURN(
      const coldstream_callbacks callbacks,
      FromCaller(given, &coldstream_callbacks_init_sized, "callbacks"));
  RequestCallbacks own = CallbacksOf(callbacks, KindOf(request));
  ASSIGN_OR_RETURN(
      const RequestId submitted,
      in_callback ? open.engine->TrySubmit(std::move(request), std::move(own))
                  : open.engine->Submit(std::move(request), std::move(own)));
  if (id != nullptr) *id = submitted;
  return absl::OkStatus();
}

Status Run(OpenEngine& open, Request request, coldstream_result** result) {
  const CResultKind kind = KindOf(request);
  ASSIGN_OR_RETURN(std::future<RequestResult> future,
                   open.engine->Submit(std::move(request)));
  RequestResult ended = future.get();
  const Status status = ended.status;
  *result = NewCResult(std::move(ended), kind);
  return status;
}

// Those of texts and of embeddings alike.
template <typename CRequest>
coldstream_code SubmitGiven(coldstream_engine engine, const CRequest* request,
                            const coldstream_callbacks* callbacks, uint64_t* id,
                            coldstream_error* error) {
  return WithEngine(engine, error, [&](OpenEngine& open) -> Status {
    ASSIGN_OR_RETURN(Request own, Own(open, request));
    return Submit(open, std::move(own), callbacks, id);
  });
}

template <typename CRequest>
coldstream_code RunGiven(coldstream_engine engine, const CRequest* request,
                         coldstream_result** result, const char* function,
                         coldstream_error* error) {
  if (result != nullptr) *result = nullptr;
  return WithEngine(engine, error, [&](OpenEngine& open) -> Status {
    if (result == nullptr)
      return absl::InvalidArgumentError("the place for the result is NULL");
    RETURN_IF_ERROR(RefuseInCallback(function));
    ASSIGN_OR_RETURN(Request own, Own(open, request));
    return Run(open, std::move(own), result);
  });
}

Status Tokenize(OpenEngine& open, const char* text, size_t bytes,
                int32_t parse_special, int32_t* tokens, size_t capacity,
                size_t* count) {
  if (text == nullptr || count == nullptr ||
      (tokens == nullptr && capacity > 0))
    return absl::InvalidArgumentError(
        "tokenize: text, tokens or count is NULL");
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer,
                   open.engine->model().tokenizer());
  const std::vector<TokenId> ids = tokenizer->Encode(
      {text, bytes},
      parse_special != 0 ? SpecialTokens::kParse : SpecialTokens::kAsText);
  *count = ids.size();
  std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
  return absl::OkStatus();
}

Status FillStats(const OpenEngine& open, coldstream_stats* given) {
  if (given == nullptr)
    return absl::InvalidArgumentError("get_stats: stats is NULL");
  ASSIGN_OR_RETURN(coldstream_stats stats,
                   FromCaller(given, &coldstream_stats_init_sized, "stats"));
  const BatchStats batch = open.engine->batch_stats();
  const EngineStats engine = open.engine->stats();
  stats.submitted = batch.submitted;
  stats.waiting = batch.waiting;
  stats.running = batch.running;
  stats.finished = batch.finished;
  stats.failed = batch.failed;
  stats.passes = batch.passes;
  stats.computed_tokens = batch.computed_tokens;
  stats.generated_tokens = batch.generated_tokens;
  stats.reused_tokens = batch.reused_tokens;
  stats.bytes_from_disk = engine.bytes_from_disk;
  stats.bytes_uploaded = engine.bytes_uploaded;
  stats.disk_busy_seconds = engine.disk_busy_seconds;
  stats.compute_seconds = engine.compute_seconds;
  stats.stall_seconds = engine.stall_seconds;
  std::memcpy(given, &stats, std::min<size_t>(given->size, sizeof(stats)));
  return absl::OkStatus();
}

}  // namespace
}  // namespace coldstream

using namespace coldstream;  // NOLINT: the functions below are C's

const char* coldstream_version(void) { return COLDSTREAM_VERSION; }

coldstream_code coldstream_open(const char* path,
                                const coldstream_options* options,
                                coldstream_engine* engine,
                                coldstream_error* error) {
  return Guarded(error, [&] { return Open(path, options, engine); });
}

coldstream_code coldstream_close(coldstream_engine engine,
                                 coldstream_error* error) {
  return WithEngine(engine, error, [&](OpenEngine& open) -> Status {
    RETURN_IF_ERROR(RefuseInCallback("coldstream_close"));
    // Of two threads that close at once one is told.
    if (CHandles::Instance().Remove(engine.id) == nullptr)
      return absl::FailedPreconditionError("the engine is being closed");
    open.engine->Stop();
    return absl::OkStatus();
  });
}

const char* coldstream_warning(coldstream_engine engine, size_t index) {
  const auto open = CHandles::Instance().Find(engine.id);
  if (open == nullptr || index >= open->warnings.size()) return "";
  return open->warnings[index].c_str();
}

coldstream_code coldstream_tokenize(coldstream_engine engine, const char* text,
                                    size_t bytes, int32_t parse_special,
                                    int32_t* tokens, size_t capacity,
                                    size_t* count, coldstream_error* error) {
  return WithEngine(engine, error, [&](OpenEngine& open) {
    return Tokenize(open, text, bytes, parse_special, tokens, capacity, count);
  });
}

coldstream_code coldstream_submit(coldstream_engine engine,
                                  const coldstream_request* request,
                                  const coldstream_callbacks* callbacks,
                                  uint64_t* id, coldstream_error* error) {
  return SubmitGiven(engine, request, callbacks, id, error);
}

coldstream_code coldstream_cancel(coldstream_engine engine, uint64_t id,
                                  coldstream_error* error) {
  return WithEngine(engine, error, [&](OpenEngine& open) {
    open.engine->Cancel(id);
    return absl::OkStatus();
  });
}

coldstream_code coldstream_drain(coldstream_engine engine,
                                 coldstream_error* error) {
  return WithEngine(engine, error, [&](OpenEngine& open) -> Status {
    RETURN_IF_ERROR(RefuseInCallback("coldstream_drain"));
    open.engine->Drain();
    return absl::OkStatus();
  });
}

coldstream_code coldstream_generate(coldstream_engine engine,
                                    const coldstream_request* request,
                                    coldstream_result** result,
                                    coldstream_error* error) {
  return RunGiven(engine, request, result, "coldstream_generate", error);
}

coldstream_code coldstream_submit_embedding(
    coldstream_engine engine, const coldstream_embedding_request* request,
    const coldstream_callbacks* callbacks, uint64_t* id,
    coldstream_error* error) {
  return SubmitGiven(engine, request, callbacks, id, error);
}

coldstream_code coldstream_embed(coldstream_engine engine,
                                 const coldstream_embedding_request* request,
                                 coldstream_result** result,
                                 coldstream_error* error) {
  return RunGiven(engine, request, result, "coldstream_embed", error);
}

coldstream_code coldstream_get_stats(coldstream_engine engine,
                                     coldstream_stats* stats,
                                     coldstream_error* error) {
  return WithEngine(engine, error,
                    [&](OpenEngine& open) { return FillStats(open, stats); });
}
