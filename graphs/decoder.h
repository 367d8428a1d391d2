// One parametric transformer block, run unit by unit.
//
// x += attention(norm(x)); x += ffn(norm(x)); or, with a parallel residual,
// both from one norm. Grouped-query attention over the paged f16 KV cache, RoPE
// on queries and keys, SwiGLU (Shazeer 2020, arXiv 2002.05202).
//
// A pass: Begin(batch), RunUnit for every unit in order, End; logits() and
// hidden() hold until the next Begin. What happens where is the business of
// PassOps: on the CPU each call has done its work, on CUDA it has queued it
// until End.
//
// Beside a device the CPU may compute the attention or the FFN of some layers
// (scheduler/placement.h): then the residual stream crosses to it and back,
// [T, hidden] floats, where the weights would have. The host waits for the
// device at each crossing to the CPU, and at no other time.
//
// Not thread-safe but for cpu_work().
#ifndef COLDSTREAM_GRAPHS_DECODER_H_
#define COLDSTREAM_GRAPHS_DECODER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "graphs/batch.h"
#include "graphs/embedding_rows.h"
#include "graphs/kv_cache.h"
#include "graphs/model_config.h"
#include "graphs/weight_map.h"
#include "graphs/workspace.h"
#include "io/reader.h"
#include "kernels/ops.h"
#include "kernels/pass_ops.h"
#include "kernels/rope_table.h"
#include "scheduler/placement.h"

namespace coldstream {

// Units that the CPU computed beside a device, since the decoder was made.
struct CpuWork {
  int64_t units = 0;
  double seconds = 0;  // waiting for the device not counted
};

class Decoder {
 public:
  // The CPU beside a device.
  struct HostSide {
    PassOps* ops = nullptr;  // null: there is none
    Workspace* workspace = nullptr;
    // The vector unit in host memory, there when the first unit runs.
    const std::byte* vectors = nullptr;
    // Whole halves of layers, never the head. The attention of a layer is on
    // the side that its part of the cache is on, whatever the phase.
    const Placement* placement = nullptr;
  };
  // What a decoder works with; all of it must outlive the decoder.
  struct Parts {
    const ModelConfig* config;
    const WeightMap* map;
    PassOps* ops;
    const Ops* host_ops;  // for embedding rows
    Reader* reader;
    KvCache* cache;
    Workspace* workspace;
    EmbeddingRows* embedding;
    int64_t vocab;  // ids that may be chosen; those from here on are padding
    HostSide host = {};
  };
  explicit Decoder(const Parts& parts);

  // Takes the tokens of a pass and reads their embedding rows. The batch has
  // 1..workspace.max_tokens tokens, at most max_logit_rows of which want
  // logits. `phase`: which of the host side's placements holds for the pass.
  // Errors: InvalidArgument (token id), the reader's.
  Status Begin(const Batch& batch, Phase phase = Phase::kDecode);

  // `weights`: the unit's buffer in the memory of the side that computes it; it
  // must stay as it is until the work queued by this call is done. Errors: the
  // device's.
  Status RunUnit(int unit, const std::byte* weights);

  // Waits for the pass. Errors: Internal naming the first layer whose output
  // is not finite, or the device's.
  Status End();

  // Of the tokens that wanted logits, in batch order.
  int64_t logit_rows() const {
    return static_cast<int64_t>(logit_tokens_.size());
  }
  LogitRow row(int64_t row) const;
  std::span<const float> logits(int64_t row) const;  // of a row that has all

  // [rows that wanted hidden states, in batch order][hidden]: what the final
  // norm makes of the last layer. The head has no part in it.
  int64_t hidden_rows() const {
    return static_cast<int64_t>(hidden_tokens_.size());
  }
  std::span<const float> hidden(int64_t row) const;

  CpuWork cpu_work() const;  // any thread

 private:
  struct Side {
    PassOps* ops = nullptr;
    Workspace* workspace = nullptr;
    const std::byte* vectors = nullptr;
  };
  // Where the rows of a product go: [tokens, stride] floats.
  struct Output {
    float* values = nullptr;
    int64_t stride = 0;
  };
  // What of a row crosses to the host: its best `count`, to `begin` of
  // host_best, or with 0 the whole row.
  struct Best {
    int64_t begin = 0;
    int64_t count = 0;
  };
  Side* SideOf(int unit);
  // Takes what the half that begins with matrix `first` works on to `side`.
  Status MoveTo(Side* side, MatrixKind first);
  Status RunMatrices(int unit, const std::byte* weights);
  // A pass is these three for every matrix: what it is multiplied with, where
  // its rows go, and what is done once they are all there.
  Status SetInput(MatrixKind kind, size_t layer);
  Output OutputOf(MatrixKind kind, size_t layer) const;
  Status UseOutput(MatrixKind kind, int64_t layer);

  // A norm or bias as floats: where it lies, or in workspace.vector.
  StatusOr<const float*> LoadVector(const WeightRef& ref);
  // normed = norm(x), for every token.
  Status Normalise(const WeightRef& ref);
  // head_in = norm(x), for tokens that want logits.
  Status NormaliseLogitRows();
  // out += bias for every token; out: [tokens, bias.cols]. Nothing if absent.
  Status AddBias(const WeightRef& bias, float* out);
  Status AddToResidual(const float* x);
  // Rotates q and k, stores k and v in the cache, and attends.
  Status RotateStoreAndAttend(const LayerShape& shape, int64_t layer);
  Status FinishLogits();
  // Brings every row to the host: all of it, or its best.
  Status CopyOutRows();
  // Best::count of the token's row.
  int64_t ChoicesOf(const BatchToken& token) const;
  // host_hidden = norm(x), for tokens that want hidden states.
  Status FinishHidden();
  int64_t tokens() const { return static_cast<int64_t>(positions_.size()); }
  // Positions and block tables of a batch, for PassOps.
  void DescribeTokens(const Batch& batch);

  const Parts parts_;
  RopeTable rope_;
  Side main_;            // the device, or the CPU where it computes alone
  Side host_;            // the CPU beside a device
  Side* side_ = &main_;  // where the residual stream is
  Phase phase_ = Phase::kDecode;
  std::atomic<int64_t> cpu_units_{0};
  std::atomic<int64_t> cpu_ns_{0};
  // Of the pass, by token or by sequence; see PassTokens.
  std::vector<int32_t> ids_;
  std::vector<int64_t> positions_;
  std::vector<int32_t> sequence_;
  std::vector<int32_t> block_begin_;
  std::vector<int32_t> blocks_;
  std::vector<int32_t> logit_tokens_;
  std::vector<Best> best_;  // by row
  std::vector<int32_t> hidden_tokens_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_DECODER_H_
