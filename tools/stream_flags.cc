#include "tools/stream_flags.h"

#include "absl/strings/str_format.h"
#include "base/byte_units.h"
#include "runtime/engine.h"
#include "scheduler/memory_plan.h"
#include "tools/option_checks.h"

namespace coldstream {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 24;
constexpr int64_t kMaxBatch = int64_t{1} << 16;
constexpr int64_t kMaxThreads = 1024;
constexpr uint64_t kMinRam = kKiB * kKiB;
constexpr uint64_t kMaxRam = 64 * 1024 * kGiB;
constexpr uint64_t kMinStaging = kKiB * kKiB;
// More layers than a model has are all of them: any large number will do.
constexpr int64_t kMaxLayers = 1'000'000;

void AddModelFlags(CLI::App& app, StreamFlags* flags, StreamFlagSet set) {
  app.add_option("-m,--model", flags->model,
                 "GGUF file, any part of a split model, or its folder")
      ->required(set != StreamFlagSet::kPlan)
      ->type_name("PATH");
  app.add_option("-c,--ctx-size", flags->context,
                 "Context: most tokens of prompt and answer together")
      ->transform(IntegerIn(1, kMaxContext))
      ->type_name("N");
  app.add_option("-b,--batch-tokens,--batch-size", flags->batch,
                 absl::StrFormat("Most tokens of one pass over the weights, of "
                                 "all sequences together (default %d)",
                                 EngineOptions().batch_tokens))
      ->transform(IntegerIn(1, kMaxBatch))
      ->type_name("N");
  app.add_option("-t,--threads", flags->threads,
                 "Compute threads (default: the CPUs this process may use)")
      ->transform(IntegerIn(1, kMaxThreads))
      ->type_name("N");
  app.add_option("--pre", flags->pre,
                 "Pre-tokenizer to use in place of the file's")
      ->type_name("NAME");
  if (set == StreamFlagSet::kAll) {
    app.add_option("--trace", flags->trace,
                   "Write what happened when, as Chrome trace events (for "
                   "Perfetto, or coldstream trace)")
        ->type_name("FILE");
  }
  app.add_flag("--json", flags->json,
               "Print the result as one JSON object on stdout");
}

void AddMemoryFlags(CLI::App& app, StreamFlags* flags, StreamFlagSet set) {
  if (set != StreamFlagSet::kPlan) {
    app.add_option("--ram", flags->ram,
                   "Memory cap of the whole process, e.g. 8G or 1536M "
                   "(default: what the machine and its control group have "
                   "free)")
        ->transform(RamSize())
        ->type_name("SIZE");
  }
  const auto type = OneOf<KvType>({{NameOf(KvType::kF16), KvType::kF16},
                                   {NameOf(KvType::kQ8_0), KvType::kQ8_0}});
  app.add_option("--cache-type-k", flags->cache_type_k,
                 "-ctk TYPE: how keys are stored: f16, or q8_0 in 53 % of the "
                 "memory (default f16); goes with the same --cache-type-v")
      ->transform(type)
      ->type_name("TYPE");
  app.add_option("--cache-type-v", flags->cache_type_v,
                 "-ctv TYPE: how values are stored, as keys are")
      ->transform(type)
      ->type_name("TYPE");
  app.add_option("--prefetch-depth", flags->prefetch_depth,
                 "Weight units read ahead of the arithmetic (default: as many "
                 "as keep the disk busy)")
      ->transform(IntegerIn(kMinPrefetchDepth, kMaxPrefetchDepth))
      ->type_name("N");
}

void AddDeviceFlags(CLI::App& app, StreamFlags* flags, StreamFlagSet set) {
  app.add_option("--device", flags->device,
                 "Where to compute: auto (CUDA if it can start), cpu, or cuda "
                 "(default auto)")
      ->transform(OneOf<DeviceChoice>({{"auto", DeviceChoice::kAuto},
                                       {"cpu", DeviceChoice::kCpu},
                                       {"cuda", DeviceChoice::kCuda}}))
      ->type_name("WORD");
  if (set != StreamFlagSet::kPlan) {
    app.add_option("--vram", flags->vram,
                   "Cap on what is taken of the device's memory (default: "
                   "what is free, less head room)")
        ->transform(RamSize())
        ->type_name("SIZE");
  }
  app.add_option("--staging", flags->staging,
                 "Host memory, part of --ram, that weights pass through on "
                 "their way from disk to the device (default 64M)")
      ->transform(SizeIn(kMinStaging, kMaxRam))
      ->type_name("SIZE");
}

void AddSplitFlags(CLI::App& app, StreamFlags* flags) {
  app.add_option("--gpu-layers,--n-gpu-layers", flags->gpu_layers,
                 "-ngl N: the device computes the last N layers, of which the "
                 "output head is one; the CPU computes the others, with their "
                 "weights, keys and values in host memory. More than there "
                 "are is all (the default); 0 leaves the device out")
      ->transform(IntegerIn(0, kMaxLayers))
      ->type_name("N");
  app.add_option("--cpu-layers", flags->cpu_layers,
                 "The same from the other end: the CPU computes the first N "
                 "layers (default 0)")
      ->transform(IntegerIn(0, kMaxLayers))
      ->type_name("N");
  app.add_option("--cpu-ffn", flags->cpu_ffn,
                 "Of the device's layers, N evenly spread ones leave their "
                 "FFN to the CPU; prompts at most so many (default: what "
                 "measured rates say is fastest, 0 where nothing is uploaded)")
      ->transform(IntegerIn(0, kMaxLayers))
      ->type_name("N");
}

void AddIoFlags(CLI::App& app, StreamFlags* flags) {
  const ReaderOptions defaults;
  app.add_option("--io", flags->io, "How files are read (default auto)")
      ->transform(OneOf<IoBackendKind>({{"auto", IoBackendKind::kAuto},
                                        {"uring", IoBackendKind::kUring},
                                        {"pread", IoBackendKind::kPread}}))
      ->type_name("WORD");
  app.add_option("--direct", flags->direct,
                 "Past the page cache (O_DIRECT): where possible, or fail, or "
                 "not at all (default auto)")
      ->transform(OneOf<DirectMode>({{"auto", DirectMode::kAuto},
                                     {"on", DirectMode::kOn},
                                     {"off", DirectMode::kOff}}))
      ->type_name("WORD");
  app.add_option(
         "--io-depth", flags->io_depth,
         absl::StrFormat("Reads in flight (default %d)", defaults.depth))
      ->transform(IntegerIn(1, kMaxIoDepth))
      ->type_name("N");
  app.add_option("--io-chunk", flags->io_chunk,
                 "Bytes of one read, a multiple of 4k, 4k to 1G (default 1M)")
      ->transform(SizeIn(kMinIoChunkBytes, kMaxIoChunkBytes, kMinIoChunkBytes))
      ->type_name("SIZE");
}

}  // namespace

ReaderOptions StreamFlags::reader_options() const {
  ReaderOptions options;
  options.backend = io;
  if (io_depth) options.depth = *io_depth;
  if (io_chunk) options.chunk_bytes = *io_chunk;
  return options;
}

CLI::Validator RamSize() { return SizeIn(kMinRam, kMaxRam); }

const char* FirstDeviceFlag(const StreamFlags& flags) {
  if (flags.vram) return "--vram";
  if (flags.staging) return "--staging";
  if (flags.gpu_layers.value_or(0) > 0) return "--gpu-layers";
  if (flags.cpu_layers) return "--cpu-layers";
  if (flags.cpu_ffn) return "--cpu-ffn";
  return nullptr;
}

Status CheckStreamFlags(const StreamFlags& flags) {
  if (flags.cache_type_k.value_or(KvType::kF16) !=
      flags.cache_type_v.value_or(KvType::kF16)) {
    return absl::InvalidArgumentError(
        "--cache-type-k and --cache-type-v: keys and values are stored alike, "
        "give both the same type");
  }
  const char* const given = FirstDeviceFlag(flags);
  if (flags.device != DeviceChoice::kCpu || given == nullptr)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is for a device with memory of its own; --device cpu has none: leave "
      "one of the two out",
      given));
}

void AddStreamFlags(CLI::App& app, StreamFlags* flags, StreamFlagSet set) {
  AddModelFlags(app, flags, set);
  AddMemoryFlags(app, flags, set);
  AddDeviceFlags(app, flags, set);
  AddSplitFlags(app, flags);
  AddIoFlags(app, flags);
}

}  // namespace coldstream
