#include "graphs/decoder.h"

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/trace.h"

namespace coldstream {

Decoder::Decoder(const Parts& parts)
    : parts_(parts),
      rope_(parts.config->rope),
      main_{parts.ops, parts.workspace},
      host_{parts.host.ops, parts.host.workspace, parts.host.vectors} {
  const auto tokens = static_cast<size_t>(parts.workspace->max_tokens);
  ids_.reserve(tokens);
  positions_.reserve(tokens);
  sequence_.reserve(tokens);
  block_begin_.reserve(tokens + 1);
  blocks_.reserve(static_cast<size_t>(parts.cache->block_count()));
  logit_tokens_.reserve(static_cast<size_t>(parts.workspace->max_logit_rows));
  hidden_tokens_.reserve(tokens);
  best_.reserve(static_cast<size_t>(parts.workspace->max_logit_rows));
}

Status Decoder::Begin(const Batch& batch, Phase phase) {
  const Workspace& main = *main_.workspace;
  CHECK(!batch.empty() && batch.size() <= static_cast<size_t>(main.max_tokens));
  DescribeTokens(batch);
  CHECK(logit_rows() <= main.max_logit_rows);
  rope_.Fill(positions_, main.rope);
  const PassTokens tokens_of_pass = {
      .positions = positions_,
      .sequence = sequence_,
      .block_begin = block_begin_,
      .blocks = blocks_,
      .rope = {main.rope, batch.size() * static_cast<size_t>(rope_.rot_dim())},
      .logit_rows = logit_tokens_};
  RETURN_IF_ERROR(main_.ops->BeginPass(tokens_of_pass));
  if (host_.ops != nullptr)
    RETURN_IF_ERROR(host_.ops->BeginPass(tokens_of_pass));
  phase_ = phase;
  side_ = SideOf(kVectorUnit + 1);  // where the first layer begins
  const Workspace& work = *side_->workspace;
  RETURN_IF_ERROR(parts_.embedding->Read(ids_, *parts_.host_ops, *parts_.reader,
                                         work.host_x));
  return side_->ops->CopyIn(work.x, work.host_x,
                            tokens() * parts_.config->hidden);
}

void Decoder::DescribeTokens(const Batch& batch) {
  ids_.clear();
  positions_.clear();
  sequence_.clear();
  block_begin_.assign(1, 0);
  blocks_.clear();
  logit_tokens_.clear();
  hidden_tokens_.clear();
  best_.clear();
  int64_t best_end = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const KvSequence& sequence = *batch[i].sequence;
    if (i == 0 || batch[i].sequence != batch[i - 1].sequence) {
      blocks_.insert(blocks_.end(), sequence.blocks.begin(),
                     sequence.blocks.end());
      block_begin_.push_back(static_cast<int32_t>(blocks_.size()));
    }
    ids_.push_back(batch[i].id);
    positions_.push_back(batch[i].position);
    sequence_.push_back(static_cast<int32_t>(block_begin_.size()) - 2);
    if (batch[i].wants_logits) {
      logit_tokens_.push_back(static_cast<int32_t>(i));
      best_.push_back({best_end, ChoicesOf(batch[i])});
      best_end += best_.back().count;
    }
    if (batch[i].wants_hidden)
      hidden_tokens_.push_back(static_cast<int32_t>(i));
  }
}

// Where the logits are the host's already, and where they are fewer bytes than
// the choices, all are given.
int64_t Decoder::ChoicesOf(const BatchToken& token) const {
  const Workspace& work = *main_.workspace;
  CHECK(token.choices >= 0 && token.choices <= kMostChoices);
  const bool cross = work.host_logits != work.logits;
  const bool fewer =
      static_cast<uint64_t>(token.choices) * sizeof(LogitChoice) <
      static_cast<uint64_t>(parts_.config->vocab_rows) * sizeof(float);
  return cross && fewer ? token.choices : 0;
}

LogitRow Decoder::row(int64_t row) const {
  const Best& best = best_[static_cast<size_t>(row)];
  if (best.count == 0) return {.logits = logits(row)};
  return {.best = {main_.workspace->host_best + best.begin,
                   static_cast<size_t>(best.count)}};
}

std::span<const float> Decoder::logits(int64_t row) const {
  CHECK(best_[static_cast<size_t>(row)].count == 0);
  const auto vocab = static_cast<size_t>(parts_.config->vocab_rows);
  return {main_.workspace->host_logits + static_cast<size_t>(row) * vocab,
          vocab};
}

std::span<const float> Decoder::hidden(int64_t row) const {
  const auto width = static_cast<size_t>(parts_.config->hidden);
  const auto token =
      static_cast<size_t>(hidden_tokens_[static_cast<size_t>(row)]);
  return {main_.workspace->host_hidden + token * width, width};
}

CpuWork Decoder::cpu_work() const {
  return {cpu_units_.load(), static_cast<double>(cpu_ns_.load()) * 1e-9};
}

Decoder::Side* Decoder::SideOf(int unit) {
  const Placement* const placement = parts_.host.placement;
  const bool on_cpu = host_.ops != nullptr && placement->OnCpu(unit, phase_);
  return on_cpu ? &host_ : &main_;
}

Status Decoder::RunUnit(int unit, const std::byte* buffer) {
  if (unit == kVectorUnit) {
    main_.vectors = buffer;  // pinned: it stays where it is
    return absl::OkStatus();
  }
  const MatrixRows& first =
      parts_.map->matrices[static_cast<size_t>(unit)].front();
  // Without rows for it, the head is not computed.
  if (first.kind == MatrixKind::kHead && logit_rows() == 0)
    return absl::OkStatus();
  Side* const side = SideOf(unit);
  if (side != side_) {
    CHECK(first.row_begin == 0);
    RETURN_IF_ERROR(MoveTo(side, first.kind));
  }
  if (side == &main_) return RunMatrices(unit, buffer);
  const int64_t begin_ns = TraceNow();
  const Status status = RunMatrices(unit, buffer);
  ++cpu_units_;
  cpu_ns_ += TraceNow() - begin_ns;
  return status;
}

Status Decoder::MoveTo(Side* side, MatrixKind first) {
  CHECK(first == MatrixKind::kQ || first == MatrixKind::kGate ||
        (first == MatrixKind::kHead && side == &main_));
  const Workspace& from = *side_->workspace;
  const Workspace& to = *side->workspace;
  const int64_t count = tokens() * parts_.config->hidden;
  // With a parallel residual the FFN works on the attention's norm.
  const bool with_norm = first == MatrixKind::kGate &&
                         parts_.config->architecture->parallel_residual;
  side_ = side;
  if (side == &main_) {
    // What is copied stays: the host's next change of it comes after a wait for
    // the device, below or at the end of the pass.
    if (with_norm)
      RETURN_IF_ERROR(main_.ops->CopyIn(to.normed, from.normed, count));
    return main_.ops->CopyIn(to.x, from.x, count);
  }
  if (with_norm)
    RETURN_IF_ERROR(main_.ops->CopyOut(to.normed, from.normed, count));
  RETURN_IF_ERROR(main_.ops->CopyOut(to.x, from.x, count));
  return main_.ops->WaitForCopies();
}

Status Decoder::RunMatrices(int unit, const std::byte* buffer) {
  for (const MatrixRows& rows :
       parts_.map->matrices[static_cast<size_t>(unit)]) {
    const size_t layer = static_cast<size_t>(rows.layer);
    if (rows.row_begin == 0) RETURN_IF_ERROR(SetInput(rows.kind, layer));
    const Output out = OutputOf(rows.kind, layer);
    RETURN_IF_ERROR(side_->ops->Matmul(
        Resolve(rows.weight, parts_.map->units[static_cast<size_t>(unit)],
                buffer),
        out.values + rows.row_begin, out.stride));
    if (rows.last) RETURN_IF_ERROR(UseOutput(rows.kind, rows.layer));
  }
  return absl::OkStatus();
}

Status Decoder::End() {
  if (hidden_rows() > 0) RETURN_IF_ERROR(FinishHidden());
  RETURN_IF_ERROR(main_.ops->Finish());
  int layer = main_.ops->first_not_finite();
  if (host_.ops != nullptr) {
    RETURN_IF_ERROR(host_.ops->Finish());
    const int on_host = host_.ops->first_not_finite();
    if (layer < 0 || (on_host >= 0 && on_host < layer)) layer = on_host;
  }
  if (layer < 0) return absl::OkStatus();
  if (layer == parts_.config->layer_count()) {
    return absl::InternalError(
        "logits are not finite (infinity or NaN): the output head's weights "
        "are damaged or exceed the range of the arithmetic");
  }
  if (layer > parts_.config->layer_count()) {
    return absl::InternalError(
        "hidden states are not finite (infinity or NaN): the final norm's "
        "weights are damaged or exceed the range of the arithmetic");
  }
  return absl::InternalError(absl::StrFormat(
      "the output of layer %d is not finite (infinity or NaN): the weights "
      "are damaged or exceed the range of the arithmetic",
      layer));
}

Status Decoder::SetInput(MatrixKind kind, size_t layer) {
  const Workspace& work = *side_->workspace;
  const ModelConfig& config = *parts_.config;
  const LayerShape& shape = config.layers[layer];
  const LayerVectors& vectors = parts_.map->layers[layer];
  PassOps& ops = *side_->ops;
  switch (kind) {
    case MatrixKind::kQ:
      RETURN_IF_ERROR(Normalise(vectors.attn_norm));
      return ops.SetInput(work.normed, tokens(), config.hidden);
    case MatrixKind::kAttnOutput:
      return ops.SetInput(work.attended, tokens(),
                          shape.heads * shape.value_dim);
    case MatrixKind::kGate:
      // With a parallel residual the attention's norm serves both.
      if (vectors.ffn_norm.present())
        RETURN_IF_ERROR(Normalise(vectors.ffn_norm));
      return ops.SetInput(work.normed, tokens(), config.hidden);
    case MatrixKind::kDown:
      return ops.SetInput(work.gate, tokens(), shape.ffn);
    case MatrixKind::kHead:
      RETURN_IF_ERROR(NormaliseLogitRows());
      return ops.SetInput(work.head_in, logit_rows(), config.hidden);
    case MatrixKind::kK:
    case MatrixKind::kV:
    case MatrixKind::kUp:
      break;  // what the matrix before had
  }
  return absl::OkStatus();
}

Decoder::Output Decoder::OutputOf(MatrixKind kind, size_t layer) const {
  const Workspace& work = *side_->workspace;
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
  const Workspace& work = *side_->workspace;
  PassOps& ops = *side_->ops;
  switch (kind) {
    case MatrixKind::kQ:
      return AddBias(vectors.q_bias, work.q);
    case MatrixKind::kK:
      return AddBias(vectors.k_bias, work.k);
    case MatrixKind::kV:
      RETURN_IF_ERROR(AddBias(vectors.v_bias, work.v));
      return RotateStoreAndAttend(shape, layer);
    case MatrixKind::kAttnOutput:
      RETURN_IF_ERROR(AddBias(vectors.attn_output_bias, work.projected));
      return AddToResidual(work.projected);
    case MatrixKind::kUp:
      return ops.SwiGlu(work.gate, work.up, tokens() * shape.ffn, work.gate);
    case MatrixKind::kDown:
      RETURN_IF_ERROR(AddToResidual(work.projected));
      return ops.CheckFinite(work.x, tokens() * parts_.config->hidden,
                             static_cast<int>(layer));
    case MatrixKind::kHead:
      return FinishLogits();
    case MatrixKind::kGate:
      break;
  }
  return absl::OkStatus();
}

StatusOr<const float*> Decoder::LoadVector(const WeightRef& ref) {
  const TensorView view =
      Resolve(ref, parts_.map->units[kVectorUnit], side_->vectors);
  if (view.type == DType::kF32 &&
      reinterpret_cast<uintptr_t>(view.data) % alignof(float) == 0)
    return reinterpret_cast<const float*>(view.data);
  RETURN_IF_ERROR(side_->ops->Dequantize(view, side_->workspace->vector));
  return side_->workspace->vector;
}

Status Decoder::Normalise(const WeightRef& ref) {
  ASSIGN_OR_RETURN(const float* weight, LoadVector(ref));
  const ModelConfig& config = *parts_.config;
  return side_->ops->Norm(config.architecture->norm, side_->workspace->x,
                          weight, config.norm_epsilon, tokens(), config.hidden,
                          side_->workspace->normed);
}

Status Decoder::NormaliseLogitRows() {
  ASSIGN_OR_RETURN(const float* weight, LoadVector(parts_.map->final_norm));
  const ModelConfig& config = *parts_.config;
  return side_->ops->NormLogitRows(
      config.architecture->norm, side_->workspace->x, weight,
      config.norm_epsilon, config.hidden, side_->workspace->head_in);
}

Status Decoder::AddBias(const WeightRef& bias, float* out) {
  if (!bias.present()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const float* values, LoadVector(bias));
  return side_->ops->AddBias(values, tokens(), bias.cols, out);
}

Status Decoder::AddToResidual(const float* x) {
  return side_->ops->Add(x, tokens() * parts_.config->hidden,
                         side_->workspace->x);
}

Status Decoder::RotateStoreAndAttend(const LayerShape& shape, int64_t layer) {
  const Workspace& work = *side_->workspace;
  PassOps& ops = *side_->ops;
  const RopePairing pairing = parts_.config->architecture->rope;
  const KvLayer cache = parts_.cache->Layer(layer);
  RETURN_IF_ERROR(ops.Rope(work.q, shape.heads, shape.key_dim, pairing));
  RETURN_IF_ERROR(ops.Rope(work.k, shape.kv_heads, shape.key_dim, pairing));
  RETURN_IF_ERROR(ops.StoreKv(work.k, work.v, cache));
  return ops.Attend(work.q, cache, work.attended);
}

Status Decoder::FinishLogits() {
  const ModelConfig& config = *parts_.config;
  const Workspace& work = *side_->workspace;
  PassOps& ops = *side_->ops;
  const int64_t count = logit_rows() * config.vocab_rows;
  if (config.logit_scale != 1)
    RETURN_IF_ERROR(ops.Scale(config.logit_scale, count, work.logits));
  RETURN_IF_ERROR(ops.CheckFinite(work.logits, count,
                                  static_cast<int>(config.layer_count())));
  return CopyOutRows();
}

// Neighbours that want the same cross together.
Status Decoder::CopyOutRows() {
  const int64_t width = parts_.config->vocab_rows;
  const Workspace& work = *main_.workspace;
  for (int64_t begin = 0, end = 0; begin < logit_rows(); begin = end) {
    const Best& best = best_[static_cast<size_t>(begin)];
    while (end < logit_rows() &&
           best_[static_cast<size_t>(end)].count == best.count)
      ++end;
    const float* const from = work.logits + begin * width;
    if (best.count == 0) {
      RETURN_IF_ERROR(main_.ops->CopyOut(work.host_logits + begin * width, from,
                                         (end - begin) * width));
    } else {
      RETURN_IF_ERROR(main_.ops->CopyOutBest(work.host_best + best.begin, from,
                                             end - begin, width, parts_.vocab,
                                             best.count));
    }
  }
  return absl::OkStatus();
}

// Always on the side of the head, so that a row does not depend on whether
// another token of the pass wants logits.
Status Decoder::FinishHidden() {
  if (side_ != &main_) RETURN_IF_ERROR(MoveTo(&main_, MatrixKind::kHead));
  ASSIGN_OR_RETURN(const float* weight, LoadVector(parts_.map->final_norm));
  const ModelConfig& config = *parts_.config;
  const Workspace& work = *main_.workspace;
  PassOps& ops = *main_.ops;
  // All rows from the first to the last that is wanted: those in between cost
  // less than a list of the others would.
  const int64_t begin = hidden_tokens_.front() * config.hidden;
  const int64_t rows = hidden_tokens_.back() + 1 - hidden_tokens_.front();
  const int64_t count = rows * config.hidden;
  RETURN_IF_ERROR(ops.Norm(config.architecture->norm, work.x + begin, weight,
                           config.norm_epsilon, rows, config.hidden,
                           work.normed + begin));
  RETURN_IF_ERROR(ops.CheckFinite(work.normed + begin, count,
                                  static_cast<int>(config.layer_count()) + 1));
  return ops.CopyOut(work.host_hidden + begin, work.normed + begin, count);
}

}  // namespace coldstream
