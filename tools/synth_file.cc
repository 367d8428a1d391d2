#include "tools/synth_file.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/parallel.h"
#include "io/gguf_writer.h"
#include "tools/synth_data.h"
#include "tools/synth_tokenizer.h"

namespace coldstream {
namespace {

// Chunks made at once, by all threads, before they are written in order. The
// writer keeps the disk busy meanwhile (io/atomic_file.h).
constexpr size_t kBatchChunks = 16;
constexpr uint32_t kQuantizationVersion = 2;  // of the block formats of today

uint32_t U32(int64_t value) { return static_cast<uint32_t>(value); }

// Adds until the first error.
class MetadataList {
 public:
  explicit MetadataList(GgufWriter* writer) : writer_(writer) {}

  void Add(const std::string& key, const GgufValue& value) {
    if (status_.ok()) status_ = writer_->AddMetadata(key, value);
  }
  const Status& status() const { return status_; }

 private:
  GgufWriter* writer_;
  Status status_;
};

// Key names: GGUF specification, "Standardized key-value pairs".
void AddModelMetadata(const SynthModel& model, MetadataList& list) {
  const ModelShape& shape = model.shape;
  const std::string arch = ArchName(shape.arch);
  const auto key = [&arch](const char* name) {
    return absl::StrFormat("%s.%s", arch, name);
  };
  list.Add("general.architecture", arch);
  list.Add("general.type", std::string("model"));
  list.Add("general.name", absl::StrFormat("%s (random weights)", shape.name));
  list.Add("general.file_type", model.mix.file_type());
  list.Add("general.quantization_version", kQuantizationVersion);
  list.Add(key("block_count"), U32(shape.layers));
  list.Add(key("context_length"), U32(shape.context));
  list.Add(key("embedding_length"), U32(shape.hidden));
  list.Add(key("feed_forward_length"), U32(shape.ffn));
  list.Add(key("attention.head_count"), U32(shape.heads));
  list.Add(key("attention.head_count_kv"), U32(shape.kv_heads));
  if (shape.head_dim * shape.heads != shape.hidden) {
    list.Add(key("attention.key_length"), U32(shape.head_dim));
    list.Add(key("attention.value_length"), U32(shape.head_dim));
  }
  list.Add(key("rope.dimension_count"), U32(shape.head_dim));
  list.Add(key("rope.freq_base"), static_cast<float>(shape.rope_base));
  list.Add(key(shape.arch == ModelArch::kCommandR
                   ? "attention.layer_norm_epsilon"
                   : "attention.layer_norm_rms_epsilon"),
           static_cast<float>(shape.norm_eps));
  if (shape.logit_scale)
    list.Add(key("logit_scale"), static_cast<float>(*shape.logit_scale));
  list.Add(key("vocab_size"), U32(shape.vocab));
}

// The splitting rule that goes with the architecture in real files.
std::string PreTokenizerOf(ModelArch arch) {
  return arch == ModelArch::kLlama ? "llama-bpe" : ArchName(arch);
}

void AddTokenizerMetadata(const ModelShape& shape, MetadataList& list) {
  SynthVocabulary vocabulary = MakeSynthVocabulary(shape.vocab);
  list.Add("tokenizer.ggml.model", std::string("gpt2"));
  list.Add("tokenizer.ggml.pre", PreTokenizerOf(shape.arch));
  list.Add("tokenizer.ggml.tokens", std::move(vocabulary.tokens));
  list.Add("tokenizer.ggml.token_type",
           std::vector<int32_t>(vocabulary.token_types.begin(),
                                vocabulary.token_types.end()));
  list.Add("tokenizer.ggml.merges", std::move(vocabulary.merges));
  list.Add("tokenizer.ggml.bos_token_id", U32(vocabulary.bos));
  list.Add("tokenizer.ggml.eos_token_id", U32(vocabulary.eos));
  // Qwen models begin without a token of their own.
  list.Add("tokenizer.ggml.add_bos_token", shape.arch != ModelArch::kQwen2);
  list.Add("tokenizer.ggml.add_eos_token", false);
}

Status Declare(const SynthModel& model, GgufWriter* writer) {
  MetadataList list(writer);
  AddModelMetadata(model, list);
  AddTokenizerMetadata(model.shape, list);
  RETURN_IF_ERROR(list.status());
  for (const SynthTensor& tensor : model.tensors)
    RETURN_IF_ERROR(writer->AddTensor(tensor.name, tensor.type, tensor.shape));
  return absl::OkStatus();
}

Status WriteData(const SynthModel& model, const SynthFileOptions& options,
                 GgufWriter* writer) {
  const SynthData data(model, options.seed);
  const std::span<const SynthChunk> chunks = data.chunks();
  Parallel parallel(options.threads);
  std::vector<std::byte> batch(kBatchChunks * SynthData::kMaxChunkBytes);
  const auto place = [&](size_t i) {
    return std::span(batch).subspan(i * SynthData::kMaxChunkBytes);
  };
  for (size_t begin = 0; begin < chunks.size(); begin += kBatchChunks) {
    if (options.interrupted != nullptr && *options.interrupted)
      return absl::CancelledError("interrupted");
    const auto now =
        chunks.subspan(begin, std::min(kBatchChunks, chunks.size() - begin));
    parallel.For(static_cast<int64_t>(now.size()), /*grain=*/1,
                 [&](int64_t first, int64_t last) {
                   for (auto i = static_cast<size_t>(first);
                        i < static_cast<size_t>(last); ++i)
                     data.Fill(now[i], place(i).first(now[i].bytes));
                 });
    for (size_t i = 0; i < now.size(); ++i)
      RETURN_IF_ERROR(writer->Write(place(i).first(now[i].bytes)));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<uint64_t> SynthFileBytes(const SynthModel& model) {
  GgufWriter writer;
  RETURN_IF_ERROR(Declare(model, &writer));
  return writer.file_bytes();
}

StatusOr<SynthHeader> MakeSynthHeader(const SynthModel& model) {
  GgufWriter writer;
  RETURN_IF_ERROR(Declare(model, &writer));
  return SynthHeader{writer.Header(), writer.file_bytes()};
}

StatusOr<uint64_t> WriteSynthFile(const SynthModel& model,
                                  const SynthFileOptions& options) {
  GgufWriter writer;
  RETURN_IF_ERROR(Declare(model, &writer));
  RETURN_IF_ERROR(writer.Begin(options.path));
  RETURN_IF_ERROR(WriteData(model, options, &writer));
  RETURN_IF_ERROR(writer.Finish());
  return writer.file_bytes();
}

}  // namespace coldstream
