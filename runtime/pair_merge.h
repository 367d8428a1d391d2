// Greedy merging of neighbours, best pair first: what BPE and SentencePiece
// encoding have in common.
//
// Symbols are a doubly linked list over one array. Candidates are taken in the
// order (priority, place), so equal priorities merge from the left. They wait
// in a sorted queue; those found on the way wait in a heap, which becomes the
// next queue when the queue runs out. On a megabyte of one character candidates
// arrive in order, and the heap is never sifted (4 times faster than a heap
// alone). A merged symbol never splits again, so a candidate is stale exactly
// when the two symbols at its place no longer add up to its length.
// O(n log n) time, O(n) memory, no recursion.
//
//   PairMerger merger;
//   for (...) merger.Add(id, length);
//   merger.Run(find);  // find(left, right) -> std::optional<PairMerge>
//   merger.ForEach(use);
//   merger.Clear();
// Thread-safety: none; one a call.
#ifndef COLDSTREAM_RUNTIME_PAIR_MERGE_H_
#define COLDSTREAM_RUNTIME_PAIR_MERGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace coldstream {

struct PairMerge {
  uint32_t priority = 0;  // lower merges first
  int32_t id = 0;         // of the merged symbol
};

class PairMerger {
 public:
  struct Symbol {
    int32_t id;
    uint32_t begin;   // bytes, from the first symbol's start
    uint32_t length;  // bytes; 0: merged into an earlier one
    uint32_t previous;
    uint32_t next;
  };

  void Clear() {
    symbols_.clear();
    queue_.clear();
    heap_.clear();
    taken_ = 0;
    end_ = 0;
  }

  // `length` must be positive; all lengths must add up to less than 4 GiB.
  void Add(int32_t id, uint32_t length) {
    const auto index = static_cast<uint32_t>(symbols_.size());
    symbols_.push_back({id, end_, length, index - 1, index + 1});
    end_ += length;
  }

  template <typename Find>
  void Run(const Find& find) {
    if (symbols_.size() < 2) return;
    symbols_.front().previous = kNone;
    symbols_.back().next = kNone;
    for (uint32_t i = 0; i + 1 < symbols_.size(); ++i) {
      if (const auto c = CandidateAt(i, find)) heap_.push_back(*c);
    }
    while (const std::optional<Candidate> best = Next()) {
      if (IsStale(*best)) continue;
      const auto left = static_cast<uint32_t>(best->key);
      Join(left, *best);
      if (symbols_[left].previous != kNone) {
        Push(symbols_[left].previous, find);
      }
      Push(left, find);
    }
  }

  template <typename Use>
  void ForEach(const Use& use) const {
    for (const Symbol& symbol : symbols_) {
      if (symbol.length > 0) use(symbol);
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Candidate {
    uint64_t key;     // priority, then the left symbol's index
    uint32_t length;  // of both symbols together
    int32_t id;
  };
  static bool Earlier(const Candidate& a, const Candidate& b) {
    return a.key < b.key;
  }
  static bool Later(const Candidate& a, const Candidate& b) {
    return a.key > b.key;
  }

  // Takes the best candidate out.
  std::optional<Candidate> Next() {
    if (taken_ == queue_.size()) {
      if (heap_.empty()) return std::nullopt;
      queue_.clear();
      taken_ = 0;
      std::swap(queue_, heap_);
      if (!std::is_sorted(queue_.begin(), queue_.end(), Earlier)) {
        std::sort(queue_.begin(), queue_.end(), Earlier);
      }
    }
    if (heap_.empty() || queue_[taken_].key < heap_.front().key) {
      return queue_[taken_++];
    }
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const Candidate best = heap_.back();
    heap_.pop_back();
    return best;
  }

  template <typename Find>
  std::optional<Candidate> CandidateAt(uint32_t left, const Find& find) const {
    const Symbol& l = symbols_[left];
    if (l.next == kNone) return std::nullopt;
    const Symbol& r = symbols_[l.next];
    const std::optional<PairMerge> merge = find(l, r);
    if (!merge) return std::nullopt;
    return Candidate{(uint64_t{merge->priority} << 32) | left,
                     l.length + r.length, merge->id};
  }

  template <typename Find>
  void Push(uint32_t left, const Find& find) {
    if (const auto c = CandidateAt(left, find)) {
      heap_.push_back(*c);
      std::push_heap(heap_.begin(), heap_.end(), Later);
    }
  }

  bool IsStale(const Candidate& c) const {
    const Symbol& l = symbols_[static_cast<uint32_t>(c.key)];
    return l.length == 0 || l.next == kNone ||
           l.length + symbols_[l.next].length != c.length;
  }

  void Join(uint32_t left, const Candidate& c) {
    Symbol& l = symbols_[left];
    Symbol& r = symbols_[l.next];
    l.id = c.id;
    l.length = c.length;
    l.next = r.next;
    r.length = 0;
    if (l.next != kNone) symbols_[l.next].previous = left;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;  // sorted; [0, taken_) are done with
  std::vector<Candidate> heap_;   // Later
  size_t taken_ = 0;
  uint32_t end_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_PAIR_MERGE_H_
