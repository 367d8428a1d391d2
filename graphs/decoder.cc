#include "graphs/decoder.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace coldstream {

Decoder::Decoder(const Parts& parts)
    : parts_(parts), rope_(parts.config->rope) {
  const auto tokens = static_cast<size_t>(parts.workspace->max_tokens);
  batch_.reserve(tokens);
  ids_.reserve(tokens);
  positions_.reserve(tokens);
  attention_tokens_.reserve(tokens);
  logit_tokens_.reserve(static_cast<size_t>(parts.workspace->max_logit_rows));
}

Status Decoder::Begin(const Batch& batch) {
  Workspace& work = *parts_.workspace;
  CHECK(!batch.empty() && batch.size() <= static_cast<size_t>(work.max_tokens));
  batch_ = batch;
  ids_.clear();
  positions_.clear();
  logit_tokens_.clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    ids_.push_back(batch[i].id);
    positions_.push_back(batch[i].position);
    if (batch[i].wants_logits) logit_tokens_.push_back(static_cast<int64_t>(i));
  }
  CHECK(logit_rows() <= work.max_logit_rows);
  rope_.Fill(positions_, work.rope);
  return parts_.embedding->Read(ids_, *parts_.ops, *parts_.reader, work.x);
}

std::span<const float> Decoder::logits(int64_t row) const {
  const auto vocab = static_cast<size_t>(parts_.config->vocab_rows);
  return {parts_.workspace->logits + static_cast<size_t>(row) * vocab, vocab};
}

Status Decoder::RunUnit(int unit, const std::byte* buffer) {
  if (unit == kVectorUnit) {
    vectors_ = buffer;  // pinned: it stays where it is
    return absl::OkStatus();
  }
  for (const MatrixRows& rows :
       parts_.map->matrices[static_cast<size_t>(unit)]) {
    if (rows.kind == MatrixKind::kHead && logit_rows() == 0) continue;
    const size_t layer = static_cast<size_t>(rows.layer);
    if (rows.row_begin == 0) SetInput(rows.kind, layer);
    const Output out = OutputOf(rows.kind, layer);
    Matmul(*parts_.ops, *parts_.parallel,
           Resolve(rows.weight, parts_.map->units[static_cast<size_t>(unit)],
                   buffer),
           parts_.workspace->activations, out.values + rows.row_begin,
           out.stride);
    if (rows.last) RETURN_IF_ERROR(UseOutput(rows.kind, rows.layer));
  }
  return absl::OkStatus();
}

void Decoder::SetInput(MatrixKind kind, size_t layer) {
  Workspace& work = *parts_.workspace;
  const ModelConfig& config = *parts_.config;
  const LayerShape& shape = config.layers[layer];
  const LayerVectors& vectors = parts_.map->layers[layer];
  const auto set = [&](const float* x, int64_t rows, int64_t width) {
    work.activations.Set(x, rows, width, width);
  };
  const auto tokens = static_cast<int64_t>(batch_.size());
  switch (kind) {
    case MatrixKind::kQ:
      Normalise(vectors.attn_norm);
      return set(work.normed, tokens, config.hidden);
    case MatrixKind::kAttnOutput:
      return set(work.attended, tokens, shape.heads * shape.value_dim);
    case MatrixKind::kGate:
      // With a parallel residual the attention's norm serves both.
      if (vectors.ffn_norm.present()) Normalise(vectors.ffn_norm);
      return set(work.normed, tokens, config.hidden);
    case MatrixKind::kDown:
      return set(work.gate, tokens, shape.ffn);
    case MatrixKind::kHead:
      NormaliseLogitRows();
      return set(work.head_in, logit_rows(), config.hidden);
    case MatrixKind::kK:
    case MatrixKind::kV:
    case MatrixKind::kUp:
      return;  // what the matrix before had
  }
}

Decoder::Output Decoder::OutputOf(MatrixKind kind, size_t layer) const {
  const Workspace& work = *parts_.workspace;
  const ModelConfig& config = *parts_.config;
  const LayerShape& shape = config.layers[layer];
  switch (kind) {
    case MatrixKind::kQ:
      return {work.q, shape.heads * shape.key_dim};
    case MatrixKind::kK:
      return {work.k, shape.kv_heads * shape.key_dim};
    case MatrixKind::kV:
      return {work.v, shape.kv_heads * shape.value_dim};
    case MatrixKind::kGate:
      return {work.gate, shape.ffn};
    case MatrixKind::kUp:
      return {work.up, shape.ffn};
    case MatrixKind::kAttnOutput:
    case MatrixKind::kDown:
      return {work.projected, config.hidden};
    case MatrixKind::kHead:
      return {work.logits, config.vocab_rows};
  }
  return {};
}

Status Decoder::UseOutput(MatrixKind kind, int64_t layer) {
  const LayerShape& shape = parts_.config->layers[static_cast<size_t>(layer)];
  const LayerVectors& vectors = parts_.map->layers[static_cast<size_t>(layer)];
  const Workspace& work = *parts_.workspace;
  switch (kind) {
    case MatrixKind::kQ:
      AddBias(vectors.q_bias, work.q);
      return absl::OkStatus();
    case MatrixKind::kK:
      AddBias(vectors.k_bias, work.k);
      return absl::OkStatus();
    case MatrixKind::kV:
      AddBias(vectors.v_bias, work.v);
      RotateAndStore(shape, layer);
      Attend(shape, layer);
      return absl::OkStatus();
    case MatrixKind::kAttnOutput:
      AddBias(vectors.attn_output_bias, work.projected);
      AddToResidual(work.projected);
      return absl::OkStatus();
    case MatrixKind::kUp:
      Gate(shape.ffn);
      return absl::OkStatus();
    case MatrixKind::kDown:
      AddToResidual(work.projected);
      return CheckLayer(layer);
    case MatrixKind::kHead:
      return FinishLogits();
    case MatrixKind::kGate:
      return absl::OkStatus();
  }
  return absl::InternalError("unknown matrix kind");
}

const float* Decoder::LoadVector(const WeightRef& ref) {
  const TensorView view =
      Resolve(ref, parts_.map->units[kVectorUnit], vectors_);
  parts_.ops->MatmulFor(view.type).dequantize(view.data, view.cols,
                                              parts_.workspace->vector);
  return parts_.workspace->vector;
}

void Decoder::NormaliseRow(const float* in, const float* weight,
                           float* out) const {
  const ModelConfig& config = *parts_.config;
  if (config.architecture->norm == NormKind::kRms) {
    parts_.ops->rms_norm(in, weight, config.norm_epsilon, config.hidden, out);
  } else {
    parts_.ops->layer_norm(in, weight, nullptr, config.norm_epsilon,
                           config.hidden, out);
  }
}

void Decoder::Normalise(const WeightRef& ref) {
  const float* weight = LoadVector(ref);
  const Workspace& work = *parts_.workspace;
  const int64_t hidden = parts_.config->hidden;
  const auto tokens = static_cast<int64_t>(batch_.size());
  parts_.parallel->For(tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      NormaliseRow(work.x + t * hidden, weight, work.normed + t * hidden);
  });
}

void Decoder::NormaliseLogitRows() {
  const float* weight = LoadVector(parts_.map->final_norm);
  const Workspace& work = *parts_.workspace;
  const int64_t hidden = parts_.config->hidden;
  for (size_t row = 0; row < logit_tokens_.size(); ++row) {
    NormaliseRow(work.x + logit_tokens_[row] * hidden, weight,
                 work.head_in + static_cast<int64_t>(row) * hidden);
  }
}

void Decoder::AddBias(const WeightRef& bias, float* out) {
  if (!bias.present()) return;
  const float* values = LoadVector(bias);
  for (int64_t t = 0; t < static_cast<int64_t>(batch_.size()); ++t)
    parts_.ops->add(values, bias.cols, out + t * bias.cols);
}

void Decoder::AddToResidual(const float* x) {
  const int64_t hidden = parts_.config->hidden;
  parts_.parallel->For(
      static_cast<int64_t>(batch_.size()), 8, [&](int64_t begin, int64_t end) {
        parts_.ops->add(x + begin * hidden, (end - begin) * hidden,
                        parts_.workspace->x + begin * hidden);
      });
}

void Decoder::RotateAndStore(const LayerShape& shape, int64_t layer) {
  const Workspace& work = *parts_.workspace;
  const Ops& ops = *parts_.ops;
  const int64_t rot_dim = rope_.rot_dim();
  const RopePairing pairing = parts_.config->architecture->rope;
  const auto store = [&](const float* from, int64_t dim, int64_t slot,
                         uint16_t* block) {
    for (int64_t head = 0; head < shape.kv_heads; ++head)
      ops.to_f16(from + head * dim, dim,
                 block + (head * kKvBlockTokens + slot) * dim);
  };
  const auto tokens = static_cast<int64_t>(batch_.size());
  parts_.parallel->For(tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const BatchToken& token = batch_[static_cast<size_t>(t)];
      const float* angles = work.rope + t * rot_dim;
      float* k = work.k + t * shape.kv_heads * shape.key_dim;
      ops.rope(work.q + t * shape.heads * shape.key_dim, shape.heads,
               shape.key_dim, rot_dim, angles, pairing);
      ops.rope(k, shape.kv_heads, shape.key_dim, rot_dim, angles, pairing);
      const int block =
          token.sequence
              ->blocks[static_cast<size_t>(token.position / kKvBlockTokens)];
      const int64_t slot = token.position % kKvBlockTokens;
      store(k, shape.key_dim, slot, parts_.cache->Keys(layer, block));
      store(work.v + t * shape.kv_heads * shape.value_dim, shape.value_dim,
            slot, parts_.cache->Values(layer, block));
    }
  });
}

void Decoder::Attend(const LayerShape& shape, int64_t layer) {
  const Workspace& work = *parts_.workspace;
  // Block tables of this layer, one pair per run of tokens of a sequence.
  block_pointers_.clear();
  std::vector<AttentionToken>& tokens = attention_tokens_;
  tokens.resize(batch_.size());
  size_t total = 0;
  for (size_t i = 0; i < batch_.size(); ++i)
    if (i == 0 || batch_[i].sequence != batch_[i - 1].sequence)
      total += 2 * batch_[i].sequence->blocks.size();
  block_pointers_.reserve(total);  // pointers into it stay valid below
  for (size_t i = 0; i < batch_.size(); ++i) {
    tokens[i].position = batch_[i].position;
    if (i > 0 && batch_[i].sequence == batch_[i - 1].sequence) {
      tokens[i].key_blocks = tokens[i - 1].key_blocks;
      tokens[i].value_blocks = tokens[i - 1].value_blocks;
      continue;
    }
    const std::vector<int>& blocks = batch_[i].sequence->blocks;
    tokens[i].key_blocks = block_pointers_.data() + block_pointers_.size();
    for (int block : blocks)
      block_pointers_.push_back(parts_.cache->Keys(layer, block));
    tokens[i].value_blocks = block_pointers_.data() + block_pointers_.size();
    for (int block : blocks)
      block_pointers_.push_back(parts_.cache->Values(layer, block));
  }
  AttentionArgs args;
  args.q = work.q;
  args.out = work.attended;
  args.tokens = tokens.data();
  args.token_count = static_cast<int64_t>(tokens.size());
  args.heads = shape.heads;
  args.kv_heads = shape.kv_heads;
  args.key_dim = shape.key_dim;
  args.value_dim = shape.value_dim;
  args.scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.key_dim)));
  parts_.parallel->For(AttentionItems(args), 1,
                       [&](int64_t begin, int64_t end) {
                         parts_.ops->attention(args, begin, end);
                       });
}

void Decoder::Gate(int64_t ffn) {
  const Workspace& work = *parts_.workspace;
  parts_.parallel->For(static_cast<int64_t>(batch_.size()) * ffn, 1024,
                       [&](int64_t begin, int64_t end) {
                         parts_.ops->swiglu(work.gate + begin, work.up + begin,
                                            end - begin, work.gate + begin);
                       });
}

Status Decoder::CheckLayer(int64_t layer) const {
  const auto tokens = static_cast<int64_t>(batch_.size());
  if (parts_.ops->all_finite(parts_.workspace->x,
                             tokens * parts_.config->hidden))
    return absl::OkStatus();
  return absl::InternalError(absl::StrFormat(
      "the output of layer %d is not finite (infinity or NaN): the weights "
      "are damaged or exceed the range of the arithmetic",
      layer));
}

Status Decoder::FinishLogits() {
  const int64_t count = logit_rows() * parts_.config->vocab_rows;
  float* logits = parts_.workspace->logits;
  if (parts_.config->logit_scale != 1)
    parts_.ops->scale(parts_.config->logit_scale, count, logits);
  if (parts_.ops->all_finite(logits, count)) return absl::OkStatus();
  return absl::InternalError(
      "logits are not finite (infinity or NaN): the output head's weights are "
      "damaged or exceed the range of the arithmetic");
}

}  // namespace coldstream
