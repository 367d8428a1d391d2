// coldstream run: text from a prompt, streamed to stdout; report on stderr.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/session.h"
#include "runtime/text_stream.h"
#include "tools/command.h"
#include "tools/engine_flags.h"
#include "tools/engine_status.h"
#include "tools/prompt.h"
#include "tools/run_report.h"
#include "tools/stream_flags.h"

namespace coldstream {
namespace {

struct RunFlags {
  StreamFlags stream;
  PromptFlags prompt;
  GenerateRequest request;
  int64_t seed = -1;
};

void AddSamplingFlags(CLI::App& app, RunFlags* flags) {
  SamplingOptions& sampling = flags->request.sampling;
  app.add_option("-n,--predict", flags->request.max_tokens,
                 "Tokens to generate; -1: until the context is full")
      ->capture_default_str();
  app.add_option("--temp", sampling.temperature, "Temperature; 0 is greedy")
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "Best k tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "Nucleus; 1: off")
      ->capture_default_str();
  app.add_option("--min-p", sampling.min_p,
                 "Least probability, relative to the best; 0: off")
      ->capture_default_str();
  app.add_option("--repeat-penalty", sampling.repeat_penalty,
                 "Penalty on recent tokens; 1: off")
      ->capture_default_str();
  app.add_option("--repeat-last-n", sampling.repeat_last_n,
                 "Tokens the penalty looks back at; 0: off, -1: all")
      ->capture_default_str();
  app.add_option("--seed", flags->seed, "Seed; -1: a random one, reported")
      ->capture_default_str();
  app.add_option("--stop", flags->request.stop,
                 "Ends the text where this string comes up; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--ignore-eos", flags->request.ignore_end_of_generation,
               "Go on past end-of-generation tokens");
}

Status CheckFlags(const RunFlags& flags) {
  const GenerateRequest& request = flags.request;
  RETURN_IF_ERROR(CheckStreamFlags(flags.stream));
  if (request.max_tokens < -1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "-n: expected -1 or more tokens, got %d", request.max_tokens));
  }
  return Sampler::Create(request.sampling).status();
}

uint64_t SeedOf(int64_t seed) {
  if (seed >= 0) return static_cast<uint64_t>(seed);
  // 53 bits, so that it can be given again as it was reported.
  std::random_device device;
  return ((static_cast<uint64_t>(device()) << 32) | device()) >> 11;
}

// Positions the run can use, or 0 (the engine's default) where -n is open.
int64_t PositionsFor(const GenerateRequest& request, const Model& model) {
  if (request.max_tokens < 0) return 0;
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  return std::max(prompt, std::min(prompt + request.max_tokens,
                                   model.config().train_context));
}

void PrintResult(const RunFlags& flags, const Engine& engine,
                 SettingsSource source, const Session& session,
                 const StatusOr<GenerateResult>& result,
                 const std::string& text) {
  if (!flags.stream.json) {
    std::fputc('\n', stdout);
    std::fflush(stdout);
    const SamplingOptions& sampling = flags.request.sampling;
    std::optional<uint64_t> seed;
    if (sampling.temperature > 0) seed = sampling.seed;
    std::fprintf(stderr, "%s",
                 ReportText(engine, session.times(), seed).c_str());
    return;
  }
  nlohmann::ordered_json json = ReportJson(engine, session.times());
  json["settings"] = SettingsSourceName(source);
  json["seed"] = flags.request.sampling.seed;
  json["finish_reason"] =
      result.ok() ? FinishReasonName(result->finish) : "cancelled";
  json["text"] = ReplaceInvalidUtf8(text);
  std::printf("%s\n", json.dump(2).c_str());
}

Status Run(RunFlags* flags) {
  GenerateRequest& request = flags->request;
  request.sampling.seed = SeedOf(flags->seed);
  ASSIGN_OR_RETURN(const auto model,
                   Model::Open(ModelOptionsFrom(flags->stream)));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, model->tokenizer());
  ASSIGN_OR_RETURN(request.prompt, EncodePrompt(flags->prompt, *tokenizer));
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  EngineOptions options =
      EngineOptionsFrom(flags->stream, PositionsFor(request, *model));
  RETURN_IF_ERROR(OpenDevice(flags->stream, &options));
  options.batch_tokens = std::min(options.batch_tokens, prompt_tokens);
  ASSIGN_OR_RETURN(const auto trace, OpenTrace(flags->stream));
  options.trace = trace.get();
  SettingsSource source = SettingsSource::kDefault;
  ASSIGN_OR_RETURN(const auto engine,
                   CreateEngine(flags->stream, model, options, &source));

  const auto session = engine->NewSession();
  StatusLine status(EngineStatus(*engine, RememberedDiskRate(*model)));
  status.Begin({.prompt_tokens = prompt_tokens,
                .pass_tokens = engine->options().batch_tokens,
                .generated_tokens = request.max_tokens});
  // Text and line must not meet on one terminal: there the text alone flows.
  const bool text_on_terminal =
      !flags->stream.json && isatty(STDOUT_FILENO) == 1;
  std::string text;
  const StatusOr<GenerateResult> result =
      session->Generate(request, [&](std::string_view piece) {
        text += piece;
        if (flags->stream.json) return;
        if (text_on_terminal) status.Hide();
        std::fwrite(piece.data(), 1, piece.size(), stdout);
        std::fflush(stdout);
      });
  status.Hide();
  if (result.ok() || result.status().code() == absl::StatusCode::kCancelled)
    PrintResult(*flags, *engine, source, *session, result, text);
  return FinishTrace(trace.get(), result.status());
}

}  // namespace

void AddRunCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Generates text from a prompt");
  AddStreamFlags(*command, &flags->stream);
  AddPromptFlags(*command, &flags->prompt);
  AddSamplingFlags(*command, flags.get());
  command->final_callback([flags, chosen] {
    *chosen = [flags] {
      const Status usage = CheckFlags(*flags);
      if (!usage.ok()) return ReportUsageError(MessageOf(usage));
      return ExitCodeOf(Run(flags.get()));
    };
  });
}

}  // namespace coldstream
