#include "kernels/cuda/attention_work.h"

#include <algorithm>

namespace coldstream::cuda {
namespace {

// Shorter runs go to the decode kernel: a tile would be mostly empty.
constexpr int64_t kLeastPrefillTokens = 16;
// Partial results for runs of more than one token (speculation); beyond, they
// go to the prefill kernel. One token of each sequence always has its own.
constexpr int64_t kSparePartials = 256;

int64_t Splits(int64_t position) { return position / kSplitKeys + 1; }

}  // namespace

AttentionWork::AttentionWork(const PassLimits& limits) {
  decode_.reserve(static_cast<size_t>(MostDecodeItems(limits)));
  combine_.reserve(static_cast<size_t>(MostCombineItems(limits)));
  tiles_.reserve(static_cast<size_t>(MostTiles(limits)));
}

int64_t AttentionWork::MostPartials(const PassLimits& limits) {
  // One token a sequence: its blocks over those of a split, rounded up.
  const int64_t sequences = std::min(limits.tokens, limits.blocks);
  return limits.blocks / (kSplitKeys / kKvBlockTokens) + sequences +
         kSparePartials;
}

void AttentionWork::Plan(const PassTokens& tokens) {
  decode_.clear();
  combine_.clear();
  tiles_.clear();
  partials_ = 0;
  int64_t spare = kSparePartials;
  const auto count = static_cast<int64_t>(tokens.positions.size());
  for (int64_t begin = 0; begin < count;) {
    int64_t end = begin + 1;
    int64_t splits = Splits(tokens.positions[static_cast<size_t>(begin)]);
    while (end < count && tokens.sequence[static_cast<size_t>(end)] ==
                              tokens.sequence[static_cast<size_t>(begin)]) {
      splits += Splits(tokens.positions[static_cast<size_t>(end)]);
      ++end;
    }
    const int64_t run = end - begin;
    if (run == 1) {
      PlanDecode(tokens, begin, end);
    } else if (run < kLeastPrefillTokens && splits <= spare) {
      spare -= splits;
      PlanDecode(tokens, begin, end);
    } else {
      PlanTiles(begin, end);
    }
    begin = end;
  }
}

void AttentionWork::PlanDecode(const PassTokens& tokens, int64_t begin,
                               int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const auto token = static_cast<int32_t>(t);
    const auto splits =
        static_cast<int32_t>(Splits(tokens.positions[static_cast<size_t>(t)]));
    if (splits == 1) {
      decode_.push_back({token, 0, -1});
      continue;
    }
    combine_.push_back({token, partials_, splits});
    for (int32_t split = 0; split < splits; ++split)
      decode_.push_back({token, split, partials_++});
  }
}

void AttentionWork::PlanTiles(int64_t begin, int64_t end) {
  // The last tiles have the most keys: they start first.
  const int64_t whole = (end - begin - 1) / kTileTokens;
  for (int64_t tile = whole; tile >= 0; --tile) {
    const int64_t first = begin + tile * kTileTokens;
    tiles_.push_back(
        {static_cast<int32_t>(first),
         static_cast<int32_t>(std::min(kTileTokens, end - first))});
  }
}

}  // namespace coldstream::cuda
