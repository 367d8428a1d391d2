// Texts by id, and ids by text, without a heap block per text.
//
// One blob holds every text in id order; an open-addressing table of ids, at
// most half full, finds a text. A text need not be findable: only ids given to
// Index are, and of equal texts the first indexed wins.
// Thread-safety: const methods may be called from several threads.
#ifndef COLDSTREAM_RUNTIME_TOKEN_TABLE_H_
#define COLDSTREAM_RUNTIME_TOKEN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coldstream {

class TokenTable {
 public:
  static constexpr int32_t kNotFound = -1;

  void Reserve(size_t texts, size_t bytes);
  // Appends a text and returns its id: 0, 1, ...
  int32_t Add(std::string_view text);
  // Makes `id` findable. False where another id with its text is already.
  bool Index(int32_t id);
  int32_t Find(std::string_view text) const;

  std::string_view Text(int32_t id) const {
    const auto index = static_cast<size_t>(id);
    const uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(blob_).substr(begin, ends_[index] - begin);
  }
  size_t size() const { return ends_.size(); }
  uint64_t memory_bytes() const;

 private:
  // The slot that holds `text`, or the free one where it would go.
  size_t SlotOf(std::string_view text) const;
  void Grow();

  std::string blob_;
  std::vector<uint64_t> ends_;
  std::vector<int32_t> slots_;  // power of two; kNotFound where free
  size_t indexed_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_TOKEN_TABLE_H_
