// Which blocks of threads attend to what in a pass: made on the host once a
// pass, the same for all layers.
//
// A token's keys are cut into splits of kSplitKeys from position 0 on. A run of
// tokens of one sequence goes either to the decode kernel, a block for each
// token and split, whose partial results are combined after it; or, in tiles of
// kTileTokens, to the prefill kernel, which walks the splits itself. Both add
// the same numbers in the same order: the choice is one of speed alone, and no
// token's result depends on its batch mates.
//
//   AttentionWork work(limits);            // no later call allocates
//   work.Plan(tokens);
//   ... copy decode(), combine() and tiles() to the device
//
// Thread-safety: none.
#ifndef COLDSTREAM_KERNELS_CUDA_ATTENTION_WORK_H_
#define COLDSTREAM_KERNELS_CUDA_ATTENTION_WORK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/pass_ops.h"

namespace coldstream::cuda {

// A multiple of kKvBlockTokens. Small enough that one long sequence fills a
// card: 8192 keys of 8 heads make 256 blocks. Large enough that the partial
// results are a few percent of the keys and values read.
inline constexpr int64_t kSplitKeys = 256;
inline constexpr int64_t kTileTokens = 64;

// One split of one token.
struct DecodeItem {
  int32_t token;
  int32_t split;
  int32_t partial;  // where its result goes; -1: the only split, to the output
};

// A token whose splits are added up: partial results [partial, + splits).
struct CombineItem {
  int32_t token;
  int32_t partial;
  int32_t splits;
};

// Tokens [token, token + count) of one sequence, at most kTileTokens.
struct PrefillTile {
  int32_t token;
  int32_t count;
};

class AttentionWork {
 public:
  explicit AttentionWork(const PassLimits& limits);

  // The most partial results of any pass, for each head.
  static int64_t MostPartials(const PassLimits& limits);
  // The most entries of each list.
  static int64_t MostDecodeItems(const PassLimits& limits) {
    return MostPartials(limits) + limits.tokens;
  }
  static int64_t MostCombineItems(const PassLimits& limits) {
    return limits.tokens;
  }
  static int64_t MostTiles(const PassLimits& limits) { return limits.tokens; }

  // `tokens` within the limits.
  void Plan(const PassTokens& tokens);

  std::span<const DecodeItem> decode() const { return decode_; }
  std::span<const CombineItem> combine() const { return combine_; }
  std::span<const PrefillTile> tiles() const { return tiles_; }

 private:
  void PlanDecode(const PassTokens& tokens, int64_t begin, int64_t end);
  void PlanTiles(int64_t begin, int64_t end);

  std::vector<DecodeItem> decode_;
  std::vector<CombineItem> combine_;
  std::vector<PrefillTile> tiles_;
  int32_t partials_ = 0;  // handed out in this pass
};

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_ATTENTION_WORK_H_
