// coldstream synth: a model of any size with random weights, for benchmarks and
// for trying a machine without downloading anything.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/system_limits.h"
#include "tools/byte_size.h"
#include "tools/command.h"
#include "tools/inspect_report.h"
#include "tools/interrupt.h"
#include "tools/model_summary.h"
#include "tools/option_checks.h"
#include "tools/synth_file.h"
#include "tools/synth_tokenizer.h"

namespace coldstream {
namespace {

struct SynthFlags {
  ShapeRequest shape;
  std::string type = "q4_k_m";
  std::string output;
  uint64_t seed = 0;
  std::optional<int> threads;
  bool tied = false;
  bool untied = false;
  bool dry_run = false;
  bool json = false;
};

ModelSummary SummaryOf(const SynthModel& model) {
  std::vector<TensorInfo> tensors;
  for (const SynthTensor& tensor : model.tensors) {
    TensorInfo info;
    info.name = tensor.name;
    info.type = tensor.type;
    info.shape = tensor.shape;
    info.extent.length = tensor.bytes();
    tensors.push_back(std::move(info));
  }
  return Summarise(tensors);
}

nlohmann::json ShapeJson(const SynthModel& model) {
  const ModelShape& shape = model.shape;
  return {{"name", shape.name},         {"arch", ArchName(shape.arch)},
          {"type", model.mix.name()},   {"layers", shape.layers},
          {"hidden", shape.hidden},     {"ffn", shape.ffn},
          {"heads", shape.heads},       {"kv_heads", shape.kv_heads},
          {"head_dim", shape.head_dim}, {"vocab", shape.vocab},
          {"context", shape.context},   {"tied", shape.tied}};
}

void PrintDryRun(const SynthModel& model, uint64_t file_bytes, bool as_json) {
  const ModelSummary summary = SummaryOf(model);
  if (as_json) {
    nlohmann::json object = SummaryJson(summary);
    object["model"] = ShapeJson(model);
    object["file_bytes"] = file_bytes;
    std::puts(object.dump(2).c_str());
    return;
  }
  absl::PrintF("%s, %s, %s: %d tensors, %d parameters\n\n", model.shape.name,
               ArchName(model.shape.arch), model.mix.name(), summary.tensors,
               summary.elements);
  std::fputs(SummaryText(summary).c_str(), stdout);
  absl::PrintF("\n%-10s %14s (%d bytes)\n", "file", FormatByteSize(file_bytes),
               file_bytes);
}

void PrintResult(const SynthFlags& flags, const SynthModel& model,
                 uint64_t file_bytes, double seconds) {
  const double rate = static_cast<double>(file_bytes) / seconds / 1e9;
  if (flags.json) {
    const nlohmann::json object = {
        {"path", flags.output},     {"model", ShapeJson(model)},
        {"file_bytes", file_bytes}, {"tensor_bytes", model.tensor_bytes()},
        {"seed", flags.seed},       {"seconds", seconds},
        {"write_GBps", rate}};
    std::puts(object.dump(2).c_str());
    return;
  }
  absl::FPrintF(stderr, "wrote %s: %s in %.1f s (%.2f GB/s)\n", flags.output,
                FormatByteSize(file_bytes), seconds, rate);
}

ExitCode RunSynth(const SynthFlags& flags) {
  // What the flags alone can have wrong is a usage error.
  const StatusOr<ModelShape> shape = ResolveShape(flags.shape);
  if (!shape.ok()) return ReportUsageError(MessageOf(shape.status()));
  const StatusOr<QuantMix> mix = QuantMix::FromName(flags.type);
  if (!mix.ok()) return ReportUsageError("--type: " + MessageOf(mix.status()));
  if (flags.output.empty() && !flags.dry_run)
    return ReportUsageError("-o FILE is missing (or --dry-run)");

  const SynthModel model = DescribeSynthModel(*shape, *mix);
  for (const std::string& line : model.fallbacks) PrintWarning(line);
  if (flags.dry_run) {
    const StatusOr<uint64_t> file_bytes = SynthFileBytes(model);
    if (file_bytes.ok()) PrintDryRun(model, *file_bytes, flags.json);
    return ExitCodeOf(file_bytes.status());
  }
  const auto start = std::chrono::steady_clock::now();
  const StatusOr<uint64_t> file_bytes = WriteSynthFile(
      model, {.path = flags.output,
              .seed = flags.seed,
              .threads = flags.threads.value_or(DefaultThreads()),
              .interrupted = &CatchInterrupts()});
  if (!file_bytes.ok()) return ExitCodeOf(file_bytes.status());
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  PrintResult(flags, model, *file_bytes, elapsed.count());
  return ExitCode::kOk;
}

void AddShapeFlags(CLI::App& command, SynthFlags* flags) {
  ShapeRequest& shape = flags->shape;
  command
      .add_option("--preset", shape.preset,
                  "Dimensions of a known model; the options below change them")
      ->type_name(absl::StrJoin(PresetNames(), "|"));
  command.add_option("--arch", shape.arch, "Architecture (default llama)")
      ->transform(OneOf<ModelArch>(
          {{ArchName(ModelArch::kLlama), ModelArch::kLlama},
           {ArchName(ModelArch::kQwen2), ModelArch::kQwen2},
           {ArchName(ModelArch::kCommandR), ModelArch::kCommandR}}))
      ->type_name("WORD");
  const auto integer = [&command](
                           const char* name, std::optional<int64_t>* value,
                           const char* help, int64_t least, int64_t most) {
    command.add_option(name, *value, help)
        ->transform(IntegerIn(least, most))
        ->type_name("N");
  };
  integer("--layers", &shape.layers, "Layers", 1, 1024);
  integer("--hidden", &shape.hidden, "Width of the residual stream", 1,
          1 << 17);
  integer("--ffn", &shape.ffn, "Width of the feed-forward part", 1, 1 << 20);
  integer("--heads", &shape.heads, "Attention heads", 1, 1024);
  integer("--kv-heads", &shape.kv_heads, "Key-value heads (default: --heads)",
          1, 1024);
  integer("--head-dim", &shape.head_dim,
          "Width of a head (default: hidden / heads)", 2, 1024);
  integer("--vocab", &shape.vocab, "Tokens (default 32000)", kMinSynthVocab,
          kMaxSynthVocab);
  integer("--context", &shape.context,
          "Context length the file states (default 2048)", 1, 1 << 24);
  CLI::Option* tied = command.add_flag(
      "--tied", flags->tied, "The output head is the embedding table");
  command.add_flag("--untied", flags->untied, "It has a matrix of its own")
      ->excludes(tied);
  command.add_option("--rope-base", shape.rope_base, "RoPE frequency base")
      ->transform(PositiveNumber())
      ->type_name("X");
}

}  // namespace

void AddSynthCommand(CLI::App& app, CommandBody* chosen) {
  auto flags = std::make_shared<SynthFlags>();
  CLI::App* command = app.add_subcommand(
      "synth", "Writes a model with random weights and a usable tokenizer");
  command->add_option("-o,--output", flags->output, "File to write")
      ->type_name("FILE");
  command
      ->add_option("--type", flags->type,
                   absl::StrFormat("One type for all matrices, or a mix "
                                   "(default q4_k_m): %s",
                                   QuantMix::Names()))
      ->type_name("TYPE");
  AddShapeFlags(*command, flags.get());
  command->add_option("--seed", flags->seed, "Seed of the weights (default 0)")
      ->transform(IntegerIn(0, INT64_MAX))
      ->type_name("N");
  command
      ->add_option("-t,--threads", flags->threads,
                   "Threads (default: the CPUs this process may use); the file "
                   "does not depend on it")
      ->transform(IntegerIn(1, 1024))
      ->type_name("N");
  command->add_flag("--dry-run", flags->dry_run,
                    "Print the sizes, write nothing");
  command->add_flag("--json", flags->json,
                    "Print the result as one JSON object on stdout");
  command->final_callback([flags, chosen] {
    if (flags->tied || flags->untied) flags->shape.tied = flags->tied;
    *chosen = [flags] { return RunSynth(*flags); };
  });
}

}  // namespace coldstream
