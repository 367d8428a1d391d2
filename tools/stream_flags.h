// The options every command that streams a model takes (run, eval, bench), with
// their ranges and defaults in one place. Where llama.cpp has the option it has
// the same name here.
#ifndef COLDSTREAM_TOOLS_STREAM_FLAGS_H_
#define COLDSTREAM_TOOLS_STREAM_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "io/file.h"
#include "io/reader.h"
#include "runtime/compute_device.h"
#include "runtime/engine.h"

namespace coldstream {

struct StreamFlags {
  std::string model;               // -m: file, part of a split model, folder
  std::optional<int64_t> context;  // -c, tokens; not given: the engine's choice
  std::optional<int64_t> batch;    // -b, tokens a pass of the prompt
  std::optional<int> threads;      // -t; not given: DefaultThreads()
  std::optional<uint64_t> ram;     // --ram, bytes; not given: what is free
  DeviceChoice device = DeviceChoice::kAuto;  // --device
  std::optional<uint64_t> vram;        // --vram, bytes; not given: what is free
  std::optional<uint64_t> staging;     // --staging, bytes of host memory
  std::optional<int> gpu_layers;       // --gpu-layers, -ngl; the head counts
  std::optional<int> cpu_layers;       // --cpu-layers
  std::optional<int> cpu_ffn;          // --cpu-ffn
  std::optional<KvType> cache_type_k;  // --cache-type-k; not given: f16
  std::optional<KvType> cache_type_v;  // --cache-type-v; must be the same
  std::optional<int> prefetch_depth;   // --prefetch-depth, slots
  IoBackendKind io = IoBackendKind::kAuto;  // --io
  DirectMode direct = DirectMode::kAuto;    // --direct
  std::optional<int> io_depth;              // --io-depth, chunks in flight
  std::optional<uint64_t> io_chunk;         // --io-chunk, bytes
  std::string pre;                          // --pre; empty: the file's own
  std::string trace;                        // --trace; empty: none
  bool json = false;                        // --json

  // Of keys and values.
  KvType kv_type() const { return cache_type_k.value_or(KvType::kF16); }
  // What the reader is to be made with.
  ReaderOptions reader_options() const;
};

enum class StreamFlagSet {
  kAll,
  kTune,  // no --trace
  // Nor that; the model may be left out, --ram and --vram are the command's.
  kPlan,
};

// Adds the options to `app`; *flags is filled when app parses. Lifetime: *flags
// must outlive app.
void AddStreamFlags(CLI::App& app, StreamFlags* flags,
                    StreamFlagSet set = StreamFlagSet::kAll);

// A size that --ram and --vram take.
CLI::Validator RamSize();

// The first flag given that only makes sense on a device with memory of its
// own, as "--vram"; null: none. Nothing on the GPU (-ngl 0) is no such thing.
const char* FirstDeviceFlag(const StreamFlags& flags);

// Flags that contradict one another: types of keys and values that differ,
// those of a device with --device cpu. Errors: InvalidArgument.
Status CheckStreamFlags(const StreamFlags& flags);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_STREAM_FLAGS_H_
