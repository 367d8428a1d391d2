// coldstream eval: logits, perplexity and the best next tokens of a text.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "io/atomic_file.h"
#include "runtime/log_probabilities.h"
#include "runtime/session.h"
#include "runtime/text_stream.h"
#include "tools/command.h"
#include "tools/engine_flags.h"
#include "tools/engine_status.h"
#include "tools/option_checks.h"
#include "tools/prompt.h"
#include "tools/run_report.h"
#include "tools/stream_flags.h"

namespace coldstream {
namespace {

constexpr int64_t kDefaultChunk = 128;
constexpr size_t kTopCount = 5;

struct EvalFlags {
  StreamFlags stream;
  PromptFlags prompt;
  std::vector<TokenId> ids;  // empty: from the prompt
  std::optional<int64_t> chunk;
  std::string logits_out;
};

// What is learnt from the logits, position by position.
struct Findings {
  double negative_log_likelihood = 0;  // of tokens 1.. given those before
  std::vector<TokenProbability> top;   // after the last token
};

StatusOr<std::vector<TokenId>> TokensFrom(const EvalFlags& flags,
                                          const Model& model) {
  if (!flags.ids.empty()) {
    for (TokenId id : flags.ids) {
      if (id >= model.config().vocab_rows) {
        return absl::InvalidArgumentError(
            absl::StrFormat("--ids: token id %d is outside the vocabulary of "
                            "%d",
                            id, model.config().vocab_rows));
      }
    }
    return flags.ids;
  }
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, model.tokenizer());
  return EncodePrompt(flags.prompt, *tokenizer);
}

StatusOr<Findings> EvaluateAll(const std::vector<TokenId>& tokens,
                               int64_t chunk, AtomicFile* out,
                               Session* session) {
  Findings findings;
  const Status status = session->Evaluate(
      tokens, chunk, Session::Logits::kAll,
      [&](int64_t index, std::span<const float> logits) -> Status {
        if (out != nullptr) RETURN_IF_ERROR(out->Append(std::as_bytes(logits)));
        const auto next = static_cast<size_t>(index) + 1;
        if (next == tokens.size()) {
          findings.top = BestTokens(logits, kTopCount);
        } else {
          const auto id = static_cast<size_t>(tokens[next]);
          findings.negative_log_likelihood +=
              LogSumExp(logits) - static_cast<double>(logits[id]);
        }
        return absl::OkStatus();
      });
  RETURN_IF_ERROR(status);
  return findings;
}

std::string TokenText(const Model& model, TokenId id) {
  const StatusOr<const Tokenizer*> tokenizer = model.tokenizer();
  if (!tokenizer.ok()) return "";
  return ReplaceInvalidUtf8((*tokenizer)->Decode(id, /*with_special=*/true));
}

void PrintFindings(const EvalFlags& flags, const Engine& engine,
                   SettingsSource source, const Session& session,
                   const Findings& findings, size_t tokens) {
  std::optional<double> perplexity;
  if (tokens > 1) {
    perplexity = std::exp(findings.negative_log_likelihood /
                          static_cast<double>(tokens - 1));
  }
  if (flags.stream.json) {
    nlohmann::ordered_json json = ReportJson(engine, session.times());
    json["settings"] = SettingsSourceName(source);
    json["perplexity"] = nullptr;
    if (perplexity) json["perplexity"] = *perplexity;
    json["top"] = nlohmann::ordered_json::array();
    for (const TokenProbability& top : findings.top) {
      json["top"].push_back({{"id", top.id},
                             {"text", TokenText(engine.model(), top.id)},
                             {"logprob", top.log_probability}});
    }
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  if (perplexity) {
    std::printf("perplexity %.4f over %d predictions\n", *perplexity,
                static_cast<int>(tokens - 1));
  }
  for (const TokenProbability& top : findings.top) {
    std::printf(
        "%8d  %8.4f  %s\n", top.id, top.log_probability,
        nlohmann::json(TokenText(engine.model(), top.id)).dump().c_str());
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s", ReportText(engine, session.times()).c_str());
}

Status Eval(const EvalFlags& flags) {
  ASSIGN_OR_RETURN(const auto model,
                   Model::Open(ModelOptionsFrom(flags.stream)));
  ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                   TokensFrom(flags, *model));
  const auto count = static_cast<int64_t>(tokens.size());
  EngineOptions options = EngineOptionsFrom(flags.stream, count);
  RETURN_IF_ERROR(OpenDevice(flags.stream, &options));
  const int64_t chunk = std::min(
      flags.chunk.value_or(std::min(kDefaultChunk, options.batch_tokens)),
      count);
  options.batch_tokens = chunk;
  options.logit_rows = chunk;
  ASSIGN_OR_RETURN(const auto trace, OpenTrace(flags.stream));
  options.trace = trace.get();
  SettingsSource source = SettingsSource::kDefault;
  ASSIGN_OR_RETURN(const auto engine,
                   CreateEngine(flags.stream, model, options, &source));
  // Little-endian float32 [tokens][vocab_rows], no header.
  static_assert(std::endian::native == std::endian::little);
  std::unique_ptr<AtomicFile> out;
  if (!flags.logits_out.empty()) {
    const auto bytes =
        static_cast<uint64_t>(count * model->config().vocab_rows) *
        sizeof(float);
    ASSIGN_OR_RETURN(out, AtomicFile::Create(flags.logits_out, bytes));
  }
  const auto session = engine->NewSession();
  StatusLine status(EngineStatus(*engine, RememberedDiskRate(*model)));
  status.Begin({.prompt_tokens = count, .pass_tokens = chunk});
  const StatusOr<Findings> findings =
      EvaluateAll(tokens, chunk, out.get(), session.get());
  status.Hide();
  RETURN_IF_ERROR(FinishTrace(trace.get(), findings.status()));
  if (out != nullptr) RETURN_IF_ERROR(out->Commit());
  PrintFindings(flags, *engine, source, *session, *findings, tokens.size());
  return absl::OkStatus();
}

}  // namespace

void AddEvalCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = app.add_subcommand(
      "eval", "Computes logits and perplexity of a text or of token ids");
  AddStreamFlags(*command, &flags->stream);
  AddPromptFlags(*command, &flags->prompt);
  command->add_option("--ids", flags->ids, "Token ids, as 1,2,3")
      ->delimiter(',')
      ->check(IntegerIn(0, std::numeric_limits<TokenId>::max()))
      ->excludes("--prompt")
      ->excludes("--file");
  command
      ->add_option("--chunk", flags->chunk,
                   "Tokens a pass (default: -b, at most 128)")
      ->transform(IntegerIn(1, 1 << 20));
  command->add_option("--logits-out", flags->logits_out,
                      "Write every position's logits, little-endian float32 "
                      "[n_tokens][n_vocab]");
  command->final_callback([flags, chosen] {
    *chosen = [flags] {
      const Status usage = CheckStreamFlags(flags->stream);
      if (!usage.ok()) return ReportUsageError(MessageOf(usage));
      return ExitCodeOf(Eval(*flags));
    };
  });
}

}  // namespace coldstream
