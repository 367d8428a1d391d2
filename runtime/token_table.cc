#include "runtime/token_table.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace coldstream {

void TokenTable::Reserve(size_t texts, size_t bytes) {
  blob_.reserve(bytes);
  ends_.reserve(texts);
  size_t slots = 16;
  while (slots < 2 * texts) slots *= 2;
  if (indexed_ == 0) slots_.assign(slots, kNotFound);
}

int32_t TokenTable::Add(std::string_view text) {
  blob_.append(text);
  ends_.push_back(blob_.size());
  return static_cast<int32_t>(ends_.size() - 1);
}

bool TokenTable::Index(int32_t id) {
  if (2 * (indexed_ + 1) > slots_.size()) Grow();
  int32_t& slot = slots_[SlotOf(Text(id))];
  if (slot != kNotFound) return slot == id;
  slot = id;
  ++indexed_;
  return true;
}

int32_t TokenTable::Find(std::string_view text) const {
  return slots_.empty() ? kNotFound : slots_[SlotOf(text)];
}

size_t TokenTable::SlotOf(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t slot =
      absl::Hash<absl::string_view>{}({text.data(), text.size()}) & mask;
  while (slots_[slot] != kNotFound && Text(slots_[slot]) != text) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void TokenTable::Grow() {
  std::vector<int32_t> old(slots_.empty() ? 16 : 2 * slots_.size(), kNotFound);
  std::swap(old, slots_);
  for (const int32_t id : old) {
    if (id != kNotFound) slots_[SlotOf(Text(id))] = id;
  }
}

uint64_t TokenTable::memory_bytes() const {
  return blob_.capacity() + ends_.capacity() * sizeof(uint64_t) +
         slots_.capacity() * sizeof(int32_t);
}

}  // namespace coldstream
