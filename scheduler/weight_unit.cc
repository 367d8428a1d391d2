#include "scheduler/weight_unit.h"

#include <algorithm>
#include <numeric>

#include "base/align.h"
#include "base/check.h"

namespace coldstream {
uint64_t WeightUnit::weight_bytes() const {
  uint64_t bytes = 0;
  for (const UnitPart& part : parts) bytes += part.extent.length;
  return bytes;
}

void LayOutUnit(std::span<const uint64_t> file_sizes,
                std::span<const uint32_t> alignments, uint64_t max_gap,
                WeightUnit* unit) {
  std::vector<size_t> order(unit->parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Extent& left = unit->parts[a].extent;
    const Extent& right = unit->parts[b].extent;
    return left.file != right.file ? left.file < right.file
                                   : left.offset < right.offset;
  });

  unit->windows.clear();
  unit->buffer_bytes = 0;
  unit->read_bytes = 0;
  uint64_t aligned_end = 0;  // of the open window, rounded up, in the file
  const auto close_window = [&] {
    if (unit->windows.empty()) return;
    UnitWindow& window = unit->windows.back();
    const uint64_t size = file_sizes[static_cast<size_t>(window.file)];
    window.length = std::min(aligned_end, size) - window.offset;
    unit->read_bytes += window.length;
    unit->buffer_bytes = window.buffer_offset + (aligned_end - window.offset);
  };
  for (size_t index : order) {
    UnitPart& part = unit->parts[index];
    const auto file = static_cast<size_t>(part.extent.file);
    CHECK(part.extent.offset + part.extent.length <= file_sizes[file]);
    const uint64_t alignment = alignments[file];
    const uint64_t begin = AlignDown(part.extent.offset, alignment);
    const bool joins = !unit->windows.empty() &&
                       unit->windows.back().file == part.extent.file &&
                       begin <= aligned_end + max_gap;
    if (!joins) {
      close_window();
      unit->windows.push_back(
          {part.extent.file, begin, 0, AlignUp(unit->buffer_bytes, alignment)});
      aligned_end = begin;
    }
    aligned_end =
        std::max(aligned_end,
                 AlignUp(part.extent.offset + part.extent.length, alignment));
    const UnitWindow& window = unit->windows.back();
    part.offset = window.buffer_offset + (part.extent.offset - window.offset);
  }
  close_window();
}

void AppendWindows(const WeightUnit& unit, std::byte* base,
                   std::vector<ReadWindow>* windows) {
  for (const UnitWindow& window : unit.windows) {
    windows->push_back({window.file, window.offset, window.length,
                        base + window.buffer_offset});
  }
}

}  // namespace coldstream
