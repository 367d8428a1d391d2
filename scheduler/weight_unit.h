// Weight units: what is read, kept and computed as one piece.
//
// A unit is a list of parts (tensors, or rows of one) and, once laid out, the
// aligned windows of files that hold them and where those windows lie in the
// unit's buffer. The scheduler knows units and bytes, not layers: what a part
// means is the business of graphs/.
//
// Invariant: a part's byte i lies at buffer[part.offset + i], and
// part.offset == part.extent.offset modulo the file's alignment, so that the
// bytes of a direct read are used where they land.
#ifndef COLDSTREAM_SCHEDULER_WEIGHT_UNIT_H_
#define COLDSTREAM_SCHEDULER_WEIGHT_UNIT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/reader.h"

namespace coldstream {

struct UnitPart {
  Extent extent;
  uint64_t offset = 0;  // in the unit's buffer; set by LayOutUnit
};

// A ReadWindow before its buffer is known.
struct UnitWindow {
  int file = 0;
  uint64_t offset = 0;         // in the file, aligned
  uint64_t length = 0;         // aligned, or up to the end of the file
  uint64_t buffer_offset = 0;  // aligned
};

struct WeightUnit {
  std::string name;  // for people: "blk.3.ffn"
  std::vector<UnitPart> parts;
  // Kept in memory whatever the budget (small things every pass needs).
  bool pinned = false;

  // Set by LayOutUnit.
  std::vector<UnitWindow> windows;
  uint64_t buffer_bytes = 0;  // room the windows need
  uint64_t read_bytes = 0;    // bytes that come from the files

  // Bytes of weights, padding and gaps not counted.
  uint64_t weight_bytes() const;
};

// Finds the windows of unit.parts. Parts whose windows touch, or are at most
// `max_gap` bytes apart, share one: a small gap costs less than a request.
// file_sizes and alignments: one per file of the checkpoint; an alignment is a
// power of two, at least 1.
void LayOutUnit(std::span<const uint64_t> file_sizes,
                std::span<const uint32_t> alignments, uint64_t max_gap,
                WeightUnit* unit);

// The read requests that fill `base`, a buffer of unit.buffer_bytes.
void AppendWindows(const WeightUnit& unit, std::byte* base,
                   std::vector<ReadWindow>* windows);

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_WEIGHT_UNIT_H_
