// One parametric transformer block, run unit by unit.
//
// x += attention(norm(x)); x += ffn(norm(x)); or, with a parallel residual,
// both from one norm. Grouped-query attention over the paged f16 KV cache, RoPE
// on queries and keys, SwiGLU (Shazeer 2020, arXiv 2002.05202).
//
// A pass: Begin(batch), then RunUnit for every unit in order; logits() holds
// until the next Begin. Not thread-safe; goes wide through Parallel.
#ifndef COLDSTREAM_GRAPHS_DECODER_H_
#define COLDSTREAM_GRAPHS_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "base/status.h"
#include "graphs/batch.h"
#include "graphs/embedding_rows.h"
#include "graphs/kv_cache.h"
#include "graphs/model_config.h"
#include "graphs/weight_map.h"
#include "graphs/workspace.h"
#include "io/reader.h"
#include "kernels/matmul.h"
#include "kernels/ops.h"
#include "kernels/rope_table.h"

namespace coldstream {

class Decoder {
 public:
  // What a decoder works with; all of it must outlive the decoder.
  struct Parts {
    const ModelConfig* config;
    const WeightMap* map;
    const Ops* ops;
    Parallel* parallel;
    Reader* reader;
    KvCache* cache;
    Workspace* workspace;
    EmbeddingRows* embedding;
  };
  explicit Decoder(const Parts& parts);

  // Takes the tokens of a pass and reads their embedding rows. The batch has
  // 1..workspace.max_tokens tokens, at most max_logit_rows of which want
  // logits. Errors: InvalidArgument (token id), the reader's.
  Status Begin(const Batch& batch);

  // Errors: Internal naming the first layer whose output is not finite.
  Status RunUnit(int unit, const std::byte* weights);

  // [rows that wanted logits, in batch order][vocab_rows].
  int64_t logit_rows() const {
    return static_cast<int64_t>(logit_tokens_.size());
  }
  std::span<const float> logits(int64_t row) const;

 private:
  // Where the rows of a product go: [tokens, stride] floats.
  struct Output {
    float* values = nullptr;
    int64_t stride = 0;
  };
  // A pass is these three for every matrix: what it is multiplied with, where
  // its rows go, and what is done once they are all there.
  void SetInput(MatrixKind kind, size_t layer);
  Output OutputOf(MatrixKind kind, size_t layer) const;
  Status UseOutput(MatrixKind kind, int64_t layer);

  // A norm or bias as floats, in workspace.vector.
  const float* LoadVector(const WeightRef& ref);
  // out = norm(in) of one row, by the architecture's kind.
  void NormaliseRow(const float* in, const float* weight, float* out) const;
  // normed = norm(x), for every token.
  void Normalise(const WeightRef& ref);
  // head_in = norm(x), for tokens that want logits.
  void NormaliseLogitRows();
  // out += bias for every token; out: [tokens, bias.cols]. Nothing if absent.
  void AddBias(const WeightRef& bias, float* out);
  void AddToResidual(const float* x);
  // Rotates q and k, and stores k and v in the cache.
  void RotateAndStore(const LayerShape& shape, int64_t layer);
  void Attend(const LayerShape& shape, int64_t layer);
  // gate = swiglu(gate, up); both [tokens, ffn].
  void Gate(int64_t ffn);
  Status CheckLayer(int64_t layer) const;
  Status FinishLogits();

  const Parts parts_;
  RopeTable rope_;
  const std::byte* vectors_ = nullptr;  // unit 0, since it was first run
  Batch batch_;
  std::vector<int64_t> logit_tokens_;  // indices into batch_
  // Scratch, sized by the batch.
  std::vector<int32_t> ids_;
  std::vector<int64_t> positions_;
  std::vector<AttentionToken> attention_tokens_;
  std::vector<const uint16_t*> block_pointers_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_DECODER_H_
