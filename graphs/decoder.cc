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

Status Decoder::RunUnit(int unit_index, const std::byte* buffer) {
  const auto index = static_cast<size_t>(unit_index);
  const UnitRole& role = parts_.map->roles[index];
  const WeightUnit& unit = parts_.map->units[index];
  const auto layer = static_cast<size_t>(role.layer);
  switch (role.kind) {
    case UnitKind::kAttention:
      RunAttention(parts_.map->layers[layer], unit, buffer, role.layer);
      return absl::OkStatus();
    case UnitKind::kFfn:
      return RunFfn(parts_.map->layers[layer], unit, buffer, role.layer);
    case UnitKind::kFinalNorm:
      RunFinalNorm(role.weight, unit, buffer);
      return absl::OkStatus();
    case UnitKind::kHead:
      return RunHead(role, unit, buffer);
  }
  return absl::InternalError("unknown unit kind");
}

const float* Decoder::LoadVector(const WeightRef& ref, const WeightUnit& unit,
                                 const std::byte* buffer) {
  const TensorView view = Resolve(ref, unit, buffer);
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

void Decoder::Normalise(const WeightRef& ref, const WeightUnit& unit,
                        const std::byte* buffer) {
  const float* weight = LoadVector(ref, unit, buffer);
  const Workspace& work = *parts_.workspace;
  const int64_t hidden = parts_.config->hidden;
  const auto tokens = static_cast<int64_t>(batch_.size());
  parts_.parallel->For(tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      NormaliseRow(work.x + t * hidden, weight, work.normed + t * hidden);
  });
}

void Decoder::Project(const WeightRef& weight, const WeightRef& bias,
                      const WeightUnit& unit, const std::byte* buffer,
                      float* out) {
  Activations& activations = parts_.workspace->activations;
  Matmul(*parts_.ops, *parts_.parallel, Resolve(weight, unit, buffer),
         activations, out, weight.rows);
  if (!bias.present()) return;
  const float* values = LoadVector(bias, unit, buffer);
  for (int64_t t = 0; t < activations.tokens(); ++t)
    parts_.ops->add(values, weight.rows, out + t * weight.rows);
}

void Decoder::AddToResidual(const float* x) {
  const int64_t hidden = parts_.config->hidden;
  parts_.parallel->For(
      static_cast<int64_t>(batch_.size()), 8, [&](int64_t begin, int64_t end) {
        parts_.ops->add(x + begin * hidden, (end - begin) * hidden,
                        parts_.workspace->x + begin * hidden);
      });
}

void Decoder::RunAttention(const LayerWeights& weights, const WeightUnit& unit,
                           const std::byte* buffer, int64_t layer) {
  Workspace& work = *parts_.workspace;
  const LayerShape& shape = parts_.config->layers[static_cast<size_t>(layer)];
  const auto tokens = static_cast<int64_t>(batch_.size());
  Normalise(weights.attn_norm, unit, buffer);
  work.activations.Set(work.normed, tokens, parts_.config->hidden,
                       parts_.config->hidden);
  Project(weights.q, weights.q_bias, unit, buffer, work.q);
  Project(weights.k, weights.k_bias, unit, buffer, work.k);
  Project(weights.v, weights.v_bias, unit, buffer, work.v);
  RotateAndStore(shape, layer);
  Attend(shape, layer);
  const int64_t width = shape.heads * shape.value_dim;
  work.activations.Set(work.attended, tokens, width, width);
  Project(weights.attn_output, weights.attn_output_bias, unit, buffer,
          work.projected);
  AddToResidual(work.projected);
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

Status Decoder::RunFfn(const LayerWeights& weights, const WeightUnit& unit,
                       const std::byte* buffer, int64_t layer) {
  Workspace& work = *parts_.workspace;
  const int64_t hidden = parts_.config->hidden;
  const int64_t ffn = parts_.config->layers[static_cast<size_t>(layer)].ffn;
  const auto tokens = static_cast<int64_t>(batch_.size());
  // With a parallel residual the attention's norm serves both.
  if (weights.ffn_norm.present()) Normalise(weights.ffn_norm, unit, buffer);
  work.activations.Set(work.normed, tokens, hidden, hidden);
  Project(weights.gate, {}, unit, buffer, work.gate);
  Project(weights.up, {}, unit, buffer, work.up);
  parts_.parallel->For(tokens * ffn, 1024, [&](int64_t begin, int64_t end) {
    parts_.ops->swiglu(work.gate + begin, work.up + begin, end - begin,
                       work.gate + begin);
  });
  work.activations.Set(work.gate, tokens, ffn, ffn);
  Project(weights.down, {}, unit, buffer, work.projected);
  AddToResidual(work.projected);
  if (!parts_.ops->all_finite(work.x, tokens * hidden)) {
    return absl::InternalError(absl::StrFormat(
        "the output of layer %d is not finite (infinity or NaN): the weights "
        "are damaged or exceed the range of the arithmetic",
        layer));
  }
  return absl::OkStatus();
}

void Decoder::RunFinalNorm(const WeightRef& ref, const WeightUnit& unit,
                           const std::byte* buffer) {
  const float* weight = LoadVector(ref, unit, buffer);
  const Workspace& work = *parts_.workspace;
  const int64_t hidden = parts_.config->hidden;
  for (size_t row = 0; row < logit_tokens_.size(); ++row) {
    NormaliseRow(work.x + logit_tokens_[row] * hidden, weight,
                 work.head_in + static_cast<int64_t>(row) * hidden);
  }
  if (logit_rows() > 0) {
    parts_.workspace->activations.Set(work.head_in, logit_rows(), hidden,
                                      hidden);
  }
}

Status Decoder::RunHead(const UnitRole& role, const WeightUnit& unit,
                        const std::byte* buffer) {
  if (logit_rows() == 0) return absl::OkStatus();
  Workspace& work = *parts_.workspace;
  const int64_t vocab = parts_.config->vocab_rows;
  const int64_t rows = role.weight.rows;
  float* out = work.logits + role.head_row_begin;
  Matmul(*parts_.ops, *parts_.parallel, Resolve(role.weight, unit, buffer),
         work.activations, out, vocab);
  for (int64_t row = 0; row < logit_rows(); ++row) {
    if (parts_.config->logit_scale != 1)
      parts_.ops->scale(parts_.config->logit_scale, rows, out + row * vocab);
    if (!parts_.ops->all_finite(out + row * vocab, rows)) {
      return absl::InternalError(
          absl::StrFormat("logits are not finite (infinity or NaN) in rows %d "
                          "to %d of the output head",
                          role.head_row_begin, role.head_row_begin + rows - 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace coldstream
