// coldstream._engine: the engine for Python. What users see is
// coldstream/engine.py; here every call is short or gives the lock up.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/compute_device.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/pooling.h"
#include "runtime/prompt_tokens.h"
#include "runtime/python/pending.h"

namespace nb = nanobind;

namespace coldstream {
namespace {

// Raised as coldstream.Error: ("INVALID_ARGUMENT", message).
struct EngineError {
  std::string code;
  std::string message;
};

void Check(const Status& status) {
  if (status.ok()) return;
  throw EngineError{absl::StatusCodeToString(status.code()), MessageOf(status)};
}

template <typename T>
T ValueOf(StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

DeviceChoice DeviceNamed(const std::string& name) {
  if (name == "auto") return DeviceChoice::kAuto;
  if (name == "cpu") return DeviceChoice::kCpu;
  if (name == "cuda") return DeviceChoice::kCuda;
  throw EngineError{"INVALID_ARGUMENT",
                    "device: expected auto, cpu or cuda, got " + name};
}

struct OpenOptions {
  std::string path;
  std::string device;
  uint64_t ram_bytes = 0;
  uint64_t vram_bytes = 0;
  int threads = 0;
  int prefetch_depth = 0;
  int64_t context = 0;
  int64_t batch_tokens = 0;
  int64_t max_sequences = 0;
  int64_t queue_length = 0;
  std::string kv_type;
};

class PyEngine {
 public:
  explicit PyEngine(const OpenOptions& given) {
    EngineOptions options;
    options.ram_bytes = given.ram_bytes;
    options.vram_bytes = given.vram_bytes;
    options.threads = given.threads;
    options.prefetch_depth = given.prefetch_depth;
    options.context = given.context;
    options.batch_tokens = given.batch_tokens;
    options.max_sequences = given.max_sequences;
    options.queue_length = given.queue_length;
    options.kv_type = ValueOf(ParseKvType(given.kv_type));
    auto model = ValueOf(Model::Open({.path = given.path}));
    tokenizer_ = ValueOf(model->tokenizer());
    OpenedDevice device = ValueOf(OpenComputeDevice(DeviceNamed(given.device)));
    options.gpu = std::move(device.gpu);
    options.device_fallback = device.fallback;
    engine_ = ValueOf(Engine::Create(std::move(model), options));
    warnings_ = engine_->warnings();
    if (device.unexpected) warnings_.push_back(device.fallback);
  }

  std::vector<TokenId> PromptIds(const std::string& text, bool parse) const {
    return PromptTokens(*tokenizer_, text, Special(parse));
  }
  std::vector<TokenId> Encode(const std::string& text, bool parse) const {
    return tokenizer_->Encode(text, Special(parse));
  }
  nb::bytes Decode(TokenId token) const {
    const std::string text = tokenizer_->Decode(token, /*with_special=*/true);
    return nb::bytes(text.data(), text.size());
  }

  // Nothing where the queue is full.
  std::shared_ptr<Pending> TrySubmit(const Request& request) {
    auto pending = std::make_shared<Pending>();
    const auto id = engine_->TrySubmit(request, Pending::CallbacksFor(pending));
    if (absl::IsResourceExhausted(id.status())) return nullptr;
    Check(id.status());
    pending->set_id(*id);
    return pending;
  }
  int64_t EmbeddingSize() const { return engine_->model().config().hidden; }
  void Cancel(const Pending& pending) { engine_->Cancel(pending.id()); }

  void Close() { engine_->Stop(); }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const Engine& engine() const { return *engine_; }

 private:
  static SpecialTokens Special(bool parse) {
    return parse ? SpecialTokens::kParse : SpecialTokens::kAsText;
  }

  std::unique_ptr<Engine> engine_;
  const Tokenizer* tokenizer_ = nullptr;
  std::vector<std::string> warnings_;
};

using Score = std::pair<TokenId, double>;

// The token and what it was held for, then the best ones.
std::vector<std::vector<Score>> ScoresOf(const std::vector<TokenScore>& all) {
  std::vector<std::vector<Score>> scores;
  for (const TokenScore& score : all) {
    std::vector<Score>& row = scores.emplace_back();
    row.emplace_back(score.token.id, score.token.log_probability);
    for (const TokenProbability& best : score.best)
      row.emplace_back(best.id, best.log_probability);
  }
  return scores;
}

nb::object ResultOf(const Pending& pending) {
  const std::optional<RequestResult> result = pending.result();
  if (!result) return nb::none();
  nb::dict fields;
  fields["code"] = absl::StatusCodeToString(result->status.code());
  fields["message"] = result->status.ok() ? "" : MessageOf(result->status);
  fields["text"] = result->generated.text;
  fields["tokens"] = result->generated.tokens;
  fields["finish_reason"] = FinishReasonName(result->generated.finish);
  fields["prompt_tokens"] = result->prompt_tokens;
  fields["reused_tokens"] = result->reused_tokens;
  fields["prompt_scores"] = ScoresOf(result->prompt_scores);
  fields["token_scores"] = ScoresOf(result->generated_scores);
  fields["seconds"] = result->seconds;
  fields["embedding"] =
      nb::bytes(reinterpret_cast<const char*>(result->embedding.data()),
                result->embedding.size() * sizeof(float));
  return fields;
}

void SetEmbed(Request& request, const std::optional<std::string>& pooling,
              bool normalize) {
  EmbedOptions& embed = request.embed.emplace();
  if (pooling) embed.pooling = ValueOf(ParsePooling(*pooling));
  embed.length = normalize ? VectorLength::kOne : VectorLength::kAsItIs;
}

nb::dict StatsOf(const PyEngine& py) {
  const BatchStats batch = py.engine().batch_stats();
  const EngineStats stats = py.engine().stats();
  nb::dict fields;
  fields["submitted"] = batch.submitted;
  fields["waiting"] = batch.waiting;
  fields["running"] = batch.running;
  fields["finished"] = batch.finished;
  fields["failed"] = batch.failed;
  fields["passes"] = batch.passes;
  fields["computed_tokens"] = batch.computed_tokens;
  fields["generated_tokens"] = batch.generated_tokens;
  fields["reused_tokens"] = batch.reused_tokens;
  fields["bytes_from_disk"] = stats.bytes_from_disk;
  fields["bytes_uploaded"] = stats.bytes_uploaded;
  fields["disk_busy_seconds"] = stats.disk_busy_seconds;
  fields["compute_seconds"] = stats.compute_seconds;
  fields["stall_seconds"] = stats.stall_seconds;
  return fields;
}

void AddRequest(nb::module_& module) {
  nb::class_<SamplingOptions>(module, "Sampling")
      .def(nb::init<>())
      .def_rw("temperature", &SamplingOptions::temperature)
      .def_rw("top_k", &SamplingOptions::top_k)
      .def_rw("top_p", &SamplingOptions::top_p)
      .def_rw("min_p", &SamplingOptions::min_p)
      .def_rw("repeat_penalty", &SamplingOptions::repeat_penalty)
      .def_rw("repeat_last_n", &SamplingOptions::repeat_last_n)
      .def_rw("seed", &SamplingOptions::seed);
  nb::class_<GenerateRequest>(module, "Generate")
      .def(nb::init<>())
      .def_rw("prompt", &GenerateRequest::prompt)
      .def_rw("max_tokens", &GenerateRequest::max_tokens)
      .def_rw("sampling", &GenerateRequest::sampling)
      .def_rw("stop", &GenerateRequest::stop)
      .def_rw("ignore_eos", &GenerateRequest::ignore_end_of_generation);
  nb::class_<Request>(module, "Request")
      .def(nb::init<>())
      .def_rw("generate", &Request::generate)
      .def_rw("logprobs", &Request::logprobs)
      .def_rw("echo", &Request::echo)
      .def("set_embed", &SetEmbed, nb::arg("pooling").none(),
           nb::arg("normalize"));
}

void AddEngine(nb::module_& module) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Pending>(module, "Pending")
      .def("wait", &Pending::Wait, Unlocked())
      .def("take_text", &Pending::TakeText)
      .def("result", &ResultOf);
  nb::class_<OpenOptions>(module, "Options")
      .def(nb::init<>())
      .def_rw("path", &OpenOptions::path)
      .def_rw("device", &OpenOptions::device)
      .def_rw("ram_bytes", &OpenOptions::ram_bytes)
      .def_rw("vram_bytes", &OpenOptions::vram_bytes)
      .def_rw("threads", &OpenOptions::threads)
      .def_rw("prefetch_depth", &OpenOptions::prefetch_depth)
      .def_rw("context", &OpenOptions::context)
      .def_rw("batch_tokens", &OpenOptions::batch_tokens)
      .def_rw("max_sequences", &OpenOptions::max_sequences)
      .def_rw("queue_length", &OpenOptions::queue_length)
      .def_rw("kv_type", &OpenOptions::kv_type);
  nb::class_<PyEngine>(module, "Engine")
      .def(nb::init<const OpenOptions&>(), Unlocked())
      .def("prompt_ids", &PyEngine::PromptIds, Unlocked())
      .def("encode", &PyEngine::Encode, Unlocked())
      .def("decode", &PyEngine::Decode)
      .def("try_submit", &PyEngine::TrySubmit, Unlocked())
      .def("cancel", &PyEngine::Cancel, Unlocked())
      .def("close", &PyEngine::Close, Unlocked())
      .def("stats", &StatsOf)
      .def_prop_ro("warnings", &PyEngine::warnings)
      .def_prop_ro("embedding_size", &PyEngine::EmbeddingSize)
      .def_prop_ro("context",
                   [](const PyEngine& py) { return py.engine().context(); })
      .def_prop_ro("device", [](const PyEngine& py) {
        return std::string(py.engine().device_name());
      });
}

}  // namespace
}  // namespace coldstream

NB_MODULE(_engine, module) {
  using namespace coldstream;  // NOLINT: as in every module definition
  // Holds for the module's life.
  static PyObject* const error =
      PyErr_NewException("coldstream._engine.EngineError", nullptr, nullptr);
  module.attr("EngineError") = nb::handle(error);
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void*) {
        try {
          std::rethrow_exception(thrown);
        } catch (const EngineError& e) {
          PyErr_SetObject(error, nb::make_tuple(e.code, e.message).ptr());
        }
      });
  module.attr("version") = COLDSTREAM_VERSION;
  AddRequest(module);
  AddEngine(module);
}
