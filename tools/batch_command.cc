// coldstream batch: a file of requests in OpenAI's batch format, worked off
// with as many of them in each sweep of the weights as memory allows.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/system_limits.h"
#include "runtime/engine_plan.h"
#include "runtime/model_fingerprint.h"
#include "runtime/pooling.h"
#include "tools/batch_memory.h"
#include "tools/batch_progress.h"
#include "tools/batch_run.h"
#include "tools/command.h"
#include "tools/engine_flags.h"
#include "tools/interrupt.h"
#include "tools/machine_rates.h"
#include "tools/option_checks.h"
#include "tools/stream_flags.h"

namespace coldstream {
namespace {

constexpr int64_t kMaxSequences = 4096;
constexpr double kMaxSyncSeconds = 3600;

struct BatchFlags {
  StreamFlags stream;
  std::string input = "-";
  std::string output = "-";
  std::string chat_template;
  std::string shard = "1/1";
  BatchWriter::Order order = BatchWriter::Order::kCompletion;
  int64_t sequences = 32;
  int64_t kv_tokens = 0;
  uint64_t seed = 0;
  std::optional<Pooling> pooling;
  double sync_seconds = 5;
};

void AddBatchFlags(CLI::App& app, BatchFlags* flags) {
  app.add_option("-i,--input", flags->input,
                 "Requests, one JSON object a line; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("-o,--output", flags->output,
                 "Results, one a line; a file that is there is gone on with. - "
                 "is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--order", flags->order,
                 "Of the results: as requests end, or as in the input (default "
                 "completion)")
      ->transform(OneOf<BatchWriter::Order>(
          {{"completion", BatchWriter::Order::kCompletion},
           {"input", BatchWriter::Order::kInput}}))
      ->type_name("WORD");
  app.add_option("--shard", flags->shard,
                 "I/N: only lines I, I+N, I+2N, ... of the input")
      ->type_name("I/N")
      ->capture_default_str();
  app.add_option("--parallel", flags->sequences,
                 "-np N: requests worked on at once, at most")
      ->transform(IntegerIn(1, kMaxSequences))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--kv-tokens", flags->kv_tokens,
                 "Positions in the KV cache, of all requests together "
                 "(default: as many as are predicted to give most tokens a "
                 "second, beside the weights that then stay)")
      ->transform(IntegerIn(1, int64_t{1} << 40))
      ->type_name("N");
  app.add_option("--chat-template", flags->chat_template,
                 "Name or Jinja file, in place of the model's own");
  app.add_option("--pooling", flags->pooling,
                 "Of embeddings: mean of the tokens, or the last or first "
                 "(cls) of them (default: the model's, else mean)")
      ->transform(OneOf<Pooling>({{"mean", Pooling::kMean},
                                  {"last", Pooling::kLast},
                                  {"cls", Pooling::kCls}}))
      ->type_name("WORD");
  app.add_option("--seed", flags->seed,
                 "Goes into the seeds of requests that have none")
      ->capture_default_str();
  app.add_option("--sync-seconds", flags->sync_seconds,
                 "Results are safe from a power cut after so long")
      ->transform(NumberIn(0, kMaxSyncSeconds))
      ->type_name("N")
      ->capture_default_str();
}

Status CheckFlags(const BatchFlags& flags) {
  RETURN_IF_ERROR(CheckStreamFlags(flags.stream));
  if (flags.stream.json) {
    return absl::InvalidArgumentError(
        "--json: the results are JSON lines already");
  }
  return ParseShard(flags.shard).status();
}

StatusOr<EngineOptions> OptionsFor(const BatchFlags& flags) {
  EngineOptions options = EngineOptionsFrom(flags.stream, /*positions=*/0);
  RETURN_IF_ERROR(OpenDevice(flags.stream, &options));
  options.queue_length = flags.sequences;
  // A sequence takes one token of a pass or more. What the user gave is a cap.
  const int64_t sequences =
      std::min(flags.sequences, flags.stream.batch.value_or(flags.sequences));
  options.batch_tokens = std::max(options.batch_tokens, sequences);
  options.max_sequences = sequences;
  options.kv_tokens = flags.kv_tokens;
  return options;
}

// The context that requests will have: the default where -c is not given.
StatusOr<int64_t> ContextOf(const Model& model, EngineOptions options) {
  options.max_sequences = 1;
  ASSIGN_OR_RETURN(const EnginePlan plan, PlanEngine(model, options));
  return plan.options.context;
}

// What --kv-tokens leaves open; says what was chosen and why. `positions`: of a
// request, on average; 0: not known.
Status ShareMemory(const BatchFlags& flags, const Model& model,
                   int64_t positions, EngineOptions* options) {
  if (flags.kv_tokens > 0) return absl::OkStatus();
  RateSource source({.threads = flags.stream.threads.value_or(DefaultThreads()),
                     .reader = flags.stream.reader_options(),
                     .gpu = options->gpu,
                     .for_device = options->gpu != nullptr});
  ASSIGN_OR_RETURN(
      const BatchMemory memory,
      ChooseBatchMemory(
          model, *options,
          {.sequences = options->max_sequences, .positions = positions},
          [&]() -> StatusOr<MachineRates> { return source.RatesFor(model); }));
  source.Remember();
  for (const std::string& warning : source.warnings()) PrintWarning(warning);
  options->kv_tokens = memory.kv_tokens;
  absl::FPrintF(stderr, "%s\n", BatchMemoryText(memory));
  return absl::OkStatus();
}

// What results depend on, but for the requests.
StatusOr<BatchJob> JobOf(const BatchFlags& flags, const Engine& engine,
                         const StatusOr<ChatTemplate>& chat,
                         const std::string& input) {
  ASSIGN_OR_RETURN(std::string model,
                   ModelFingerprint(engine.model().checkpoint()));
  std::string options = absl::StrFormat(
      "context %d, seed %d, shard %s, chat template %s, %s", engine.context(),
      flags.seed, flags.shard, chat.ok() ? chat->Identity() : "none",
      engine.device_name());
  if (engine.options().kv_type != KvType::kF16)
    absl::StrAppendFormat(&options, ", KV cache of %s",
                          NameOf(engine.options().kv_type));
  if (flags.pooling)
    absl::StrAppendFormat(&options, ", pooling %s",
                          PoolingName(*flags.pooling));
  return BatchJob{
      .model = std::move(model), .options = std::move(options), .input = input};
}

Status RunBatch(const BatchFlags& flags) {
  ASSIGN_OR_RETURN(const Shard shard, ParseShard(flags.shard));
  ASSIGN_OR_RETURN(const auto model,
                   Model::Open(ModelOptionsFrom(flags.stream)));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, model->tokenizer());
  const StatusOr<ChatTemplate> chat = ChatTemplate::Create(
      model->checkpoint().metadata(), *tokenizer, flags.chat_template);
  if (!flags.chat_template.empty()) RETURN_IF_ERROR(chat.status());
  ASSIGN_OR_RETURN(EngineOptions options, OptionsFor(flags));
  int64_t context = 0;  // the positions of requests are ShareMemory's to know
  if (flags.kv_tokens == 0) {
    ASSIGN_OR_RETURN(context, ContextOf(*model, options));
  }
  const BatchInputOptions input_options = {
      .path = flags.input,
      .shard = shard,
      .seed = flags.seed,
      .context = context,
      .lines = {.cancel = &CatchInterrupts()}};
  std::string fingerprint = "standard input";
  int64_t positions = 0;
  if (flags.input != "-") {
    ASSIGN_OR_RETURN(const BatchCensus census, TakeBatchCensus(input_options));
    fingerprint = census.fingerprint;
    positions = census.positions;
  }
  RETURN_IF_ERROR(ShareMemory(flags, *model, positions, &options));
  ASSIGN_OR_RETURN(const auto trace, OpenTrace(flags.stream));
  options.trace = trace.get();
  SettingsSource source = SettingsSource::kDefault;
  ASSIGN_OR_RETURN(const auto engine,
                   CreateEngine(flags.stream, model, options, &source));
  ASSIGN_OR_RETURN(BatchJob job, JobOf(flags, *engine, chat, fingerprint));
  ASSIGN_OR_RETURN(
      const auto output,
      BatchOutput::Open(
          {.path = flags.output, .input = flags.input, .job = std::move(job)}));
  ASSIGN_OR_RETURN(const auto input, BatchInput::Open(input_options));
  BatchWriter writer(output.get(),
                     {.order = flags.order,
                      .sync_interval = std::chrono::milliseconds(
                          static_cast<int64_t>(flags.sync_seconds * 1e3))});
  BatchRun run({.engine = engine.get(),
                .chat = &chat,
                .model = {.tokenizer = tokenizer, .name = model->config().name},
                .input = input.get(),
                .output = output.get(),
                .writer = &writer,
                .cancel = &CatchInterrupts(),
                .pooling = flags.pooling});
  Status status;
  {
    const BatchProgressLine line(*engine, run);
    status = run.Run();
  }
  std::fputs(BatchSummary(*engine, run.progress()).c_str(), stderr);
  RETURN_IF_ERROR(FinishTrace(trace.get(), status));
  const int64_t failed = run.progress().failed + output->failed();
  if (failed > 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d of the requests failed; their lines of the output say why",
        failed));
  }
  return absl::OkStatus();
}

}  // namespace

void AddBatchCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<BatchFlags>();
  CLI::App* command = app.add_subcommand(
      "batch", "Works off a file of requests in OpenAI's batch format");
  AddStreamFlags(*command, &flags->stream);
  AddBatchFlags(*command, flags.get());
  command->final_callback([flags, chosen] {
    *chosen = [flags] {
      const Status usage = CheckFlags(*flags);
      if (!usage.ok()) return ReportUsageError(MessageOf(usage));
      return ExitCodeOf(RunBatch(*flags));
    };
  });
}

}  // namespace coldstream
