// Which tokens of which sequences go into the next pass (continuous batching).
//
// A pass takes a token of every sequence that is generating, then prompt tokens
// of the others by age, up to its budget of tokens and of logit rows; waiting
// sequences are admitted where KV blocks and budget are left. Hidden states,
// which some sequences want in place of logits, have no budget but the tokens'.
// Where the KV cache is full the youngest sequence is put back to wait and
// computed again later: nothing is lost, and the oldest always goes on.
//
//   scheduler.Add(&sequence);
//   while (!scheduler.empty()) {
//     const auto slices = scheduler.Compose();   // at least one token
//     ... compute them; append sampled tokens; ...
//     scheduler.Finish();                        // of the pass
//     scheduler.Remove(&done);                   // gives its blocks back
//   }
//
// Common beginnings: a sequence takes over the KV blocks that others have
// computed (graphs/kv_block_pool.h), and waits for one that is computing them
// now. At least one token of every sequence is computed.
// Invariant: a sequence's tokens are computed in order, each once between two
// times it is put back; which pass they come in depends on the others, their
// values do not.
// Thread-safety: none; one thread at a time.
// Source of the idea: Yu et al., "Orca" (OSDI 2022), iteration-level
// scheduling.
#ifndef COLDSTREAM_RUNTIME_SEQUENCE_SCHEDULER_H_
#define COLDSTREAM_RUNTIME_SEQUENCE_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "graphs/kv_block_pool.h"
#include "graphs/kv_cache.h"
#include "runtime/tokenizer.h"

namespace coldstream {

// What is wanted of a token.
enum class RowKind { kLogits, kHidden };

// What a request's computation needs; the owner keeps it until Remove.
struct SequenceState {
  std::vector<TokenId> tokens;  // the prompt, then what was generated
  KvSequence kv;                // kv.length of them are computed
  // Rows are wanted of tokens[rows_from] and all behind it.
  int64_t rows_from = 0;
  RowKind row_kind = RowKind::kLogits;
  int64_t reused_tokens = 0;  // of others' computation, in all
  int64_t put_back = 0;       // times it had to make room

  int64_t left() const { return std::ssize(tokens) - kv.length; }
};

// Tokens [begin, begin + count) of a sequence, of which the last `rows` want
// a row of the sequence's kind.
struct SequenceSlice {
  SequenceState* sequence = nullptr;
  int64_t begin = 0;
  int64_t count = 0;
  int64_t rows = 0;
};

class SequenceScheduler {
 public:
  struct Limits {
    int64_t tokens = 1;      // of a pass
    int64_t logit_rows = 1;  // of a pass
    int64_t sequences = 1;   // under way at once
  };
  // `pool` must outlive the scheduler, and hold any one sequence alone.
  SequenceScheduler(KvBlockPool* pool, const Limits& limits);

  // Waits behind all that were added before. At least one token is left.
  void Add(SequenceState* sequence);
  // Wherever it is; its blocks go back.
  void Remove(SequenceState* sequence);

  bool empty() const { return running_.empty() && waiting_.empty(); }
  int64_t running() const { return std::ssize(running_); }
  std::span<SequenceState* const> running_sequences() const { return running_; }
  std::span<const SequenceSlice> slices() const { return slices_; }
  int64_t waiting() const { return std::ssize(waiting_); }
  // Of the next pass, if there are blocks enough and nothing is shared.
  int64_t tokens_wanted() const;

  // The next pass: slices of different sequences, blocks reserved. Not empty
  // unless the scheduler is. Valid until Finish.
  std::span<const SequenceSlice> Compose();
  // The slices are computed.
  void Finish();

 private:
  void GrantRunning();
  void ReserveOrPutBack();
  void Admit();
  bool AdmitOne(SequenceState* sequence);
  bool LeaderIsComputing(const SequenceState& sequence, int64_t matched) const;
  // A slice of up to what is left of the pass; count 0 if nothing is.
  SequenceSlice Grant(SequenceState* sequence);
  void PutBackYoungest();

  KvBlockPool* const pool_;
  const Limits limits_;
  std::vector<SequenceState*> running_;  // oldest first
  std::deque<SequenceState*> waiting_;   // oldest first
  std::vector<SequenceSlice> slices_;    // of the pass
  int64_t tokens_left_ = 0;              // of the pass being composed
  int64_t rows_left_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_SEQUENCE_SCHEDULER_H_
