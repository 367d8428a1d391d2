#include "tests/support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "io/gguf_writer.h"

namespace coldstream {
namespace {

struct TinyTensor {
  std::string name;
  DType type;
  std::vector<uint64_t> shape;
  float mean;
  float spread;
};

// One row in `type`, appended.
void Encode(DType type, const std::vector<float>& row,
            std::vector<std::byte>* out) {
  const auto append = [out](const void* data, size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    out->insert(out->end(), from, from + bytes);
  };
  if (type == DType::kF32) {
    append(row.data(), row.size() * sizeof(float));
    return;
  }
  if (type == DType::kF16) {
    for (float value : row) {
      const uint16_t half = F32ToF16(value);
      append(&half, sizeof(half));
    }
    return;
  }
  CHECK(type == DType::kQ8_0);
  for (size_t block = 0; block < row.size(); block += 32) {
    float most = 0;
    for (size_t i = 0; i < 32; ++i)
      most = std::max(most, std::fabs(row[block + i]));
    const uint16_t scale = F32ToF16(most / 127);
    append(&scale, sizeof(scale));
    const float step = F16ToF32(scale);
    for (size_t i = 0; i < 32; ++i) {
      const auto quant = static_cast<int8_t>(
          step == 0 ? 0 : std::lround(row[block + i] / step));
      append(&quant, 1);
    }
  }
}

std::vector<TinyTensor> Describe(const TinyModelOptions& o) {
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  const bool command_r = o.architecture == "command-r";
  std::vector<TinyTensor> tensors;
  const auto vector = [&](const std::string& name, int64_t n, float mean) {
    tensors.push_back({name, DType::kF32, {size(n)}, mean, 0.1f});
  };
  const auto matrix = [&](const std::string& name, int64_t in, int64_t out) {
    const auto spread =
        static_cast<float>(o.scale / std::sqrt(static_cast<double>(in)));
    tensors.push_back({name, o.type, {size(in), size(out)}, 0, spread});
  };
  matrix("token_embd.weight", o.hidden, o.vocab);
  const int64_t q_width = o.heads * o.head_dim;
  const int64_t kv_width = o.kv_heads * o.head_dim;
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    vector(blk + "attn_norm.weight", o.hidden, 1);
    matrix(blk + "attn_q.weight", o.hidden, q_width);
    matrix(blk + "attn_k.weight", o.hidden, kv_width);
    matrix(blk + "attn_v.weight", o.hidden, kv_width);
    matrix(blk + "attn_output.weight", q_width, o.hidden);
    if (o.architecture == "qwen2") {
      vector(blk + "attn_q.bias", q_width, 0);
      vector(blk + "attn_k.bias", kv_width, 0);
      vector(blk + "attn_v.bias", kv_width, 0);
    }
    if (!command_r) vector(blk + "ffn_norm.weight", o.hidden, 1);
    matrix(blk + "ffn_gate.weight", o.hidden, o.ffn);
    matrix(blk + "ffn_up.weight", o.hidden, o.ffn);
    matrix(blk + "ffn_down.weight", o.ffn, o.hidden);
  }
  vector("output_norm.weight", o.hidden, 1);
  if (!o.tied) matrix("output.weight", o.hidden, o.vocab);
  for (const std::string& name : o.extra_tensors) vector(name, o.hidden, 1);
  std::erase_if(tensors, [&](const TinyTensor& tensor) {
    return std::find(o.without.begin(), o.without.end(), tensor.name) !=
           o.without.end();
  });
  return tensors;
}

// Byte-level BPE's printable stand-in for a byte (GPT-2's table).
std::string ByteToken(int byte) {
  const auto printable = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) ||
           (b >= 174 && b <= 255);
  };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

using MetadataMap = std::map<std::string, GgufValue>;

void AddTokenizer(const TinyModelOptions& o, MetadataMap* metadata) {
  CHECK(o.vocab >= 258);
  StringArray tokens;
  std::vector<int32_t> types;
  for (int64_t id = 0; id < o.vocab; ++id) {
    const bool control = id >= o.vocab - 2;
    tokens.Append(id < 256 ? ByteToken(static_cast<int>(id))
                           : "<filler" + std::to_string(id) + ">");
    types.push_back(control ? 3 : 1);
  }
  (*metadata)["tokenizer.ggml.model"] = std::string("gpt2");
  (*metadata)["tokenizer.ggml.pre"] = std::string("gpt-2");
  (*metadata)["tokenizer.ggml.tokens"] = tokens;
  (*metadata)["tokenizer.ggml.token_type"] = types;
  (*metadata)["tokenizer.ggml.merges"] = StringArray();
  (*metadata)["tokenizer.ggml.bos_token_id"] =
      static_cast<uint32_t>(o.vocab - 2);
  (*metadata)["tokenizer.ggml.eos_token_id"] =
      static_cast<uint32_t>(o.vocab - 1);
}

MetadataMap DescribeMetadata(const TinyModelOptions& o) {
  MetadataMap metadata;
  AddTokenizer(o, &metadata);
  metadata["general.architecture"] = o.architecture;
  metadata["general.name"] = std::string("tiny");
  const std::string prefix = o.architecture + ".";
  const auto integer = [&](const char* key, int64_t value) {
    metadata[prefix + key] = static_cast<uint32_t>(value);
  };
  integer("block_count", o.layers);
  integer("context_length", o.context);
  integer("embedding_length", o.hidden);
  integer("feed_forward_length", o.ffn);
  integer("attention.head_count", o.heads);
  integer("attention.head_count_kv", o.kv_heads);
  integer("attention.key_length", o.head_dim);
  integer("attention.value_length", o.head_dim);
  if (o.architecture == "command-r") {
    metadata[prefix + "logit_scale"] = 0.25f;
    metadata[prefix + "attention.layer_norm_epsilon"] = 1e-5f;
  } else {
    metadata[prefix + "attention.layer_norm_rms_epsilon"] = 1e-5f;
  }
  for (const auto& [key, value] : o.metadata) metadata[key] = value;
  for (const std::string& key : o.without) metadata.erase(key);
  return metadata;
}

}  // namespace

Status WriteTinyModel(const std::string& path,
                      const TinyModelOptions& options) {
  GgufWriter writer;
  for (const auto& [key, value] : DescribeMetadata(options))
    RETURN_IF_ERROR(writer.AddMetadata(key, value));
  const std::vector<TinyTensor> tensors = Describe(options);
  for (const TinyTensor& tensor : tensors)
    RETURN_IF_ERROR(writer.AddTensor(tensor.name, tensor.type, tensor.shape));
  RETURN_IF_ERROR(writer.Begin(path));
  std::mt19937_64 random(options.seed);
  std::uniform_real_distribution<float> uniform(-1.7f, 1.7f);
  for (const TinyTensor& tensor : tensors) {
    const uint64_t rows = tensor.shape.size() > 1 ? tensor.shape[1] : 1;
    std::vector<float> row(tensor.shape[0]);
    std::vector<std::byte> bytes;
    for (uint64_t r = 0; r < rows; ++r) {
      for (float& value : row)
        value = tensor.mean + tensor.spread * uniform(random);
      Encode(tensor.type, row, &bytes);
    }
    RETURN_IF_ERROR(writer.Write(bytes));
  }
  return writer.Finish();
}

}  // namespace coldstream
