#include "graphs/embedding_rows.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/check.h"

namespace coldstream {
namespace {

// An unaligned row touches at most this much when its ends are rounded out.
uint64_t RowRoom(const EmbeddingTable& table, const File& file) {
  const uint64_t alignment = file.window_alignment();
  const uint64_t row = RowBytes(table.type, static_cast<uint64_t>(table.cols));
  return AlignUp(row, alignment) + alignment;
}

}  // namespace

uint64_t EmbeddingRows::BytesFor(const EmbeddingTable& table, const File& file,
                                 int64_t max_tokens) {
  return RowRoom(table, file) * static_cast<uint64_t>(max_tokens);
}

StatusOr<EmbeddingRows> EmbeddingRows::Create(const EmbeddingTable& table,
                                              const File& file,
                                              int64_t max_tokens) {
  EmbeddingRows rows;
  rows.table_ = table;
  rows.file_size_ = file.size();
  rows.alignment_ = file.window_alignment();
  rows.row_bytes_ = RowBytes(table.type, static_cast<uint64_t>(table.cols));
  rows.row_room_ = RowRoom(table, file);
  ASSIGN_OR_RETURN(rows.memory_,
                   HostMemory::Allocate(BytesFor(table, file, max_tokens),
                                        "embedding rows"));
  rows.unique_.reserve(static_cast<size_t>(max_tokens));
  rows.windows_.reserve(static_cast<size_t>(max_tokens));
  return rows;
}

Status EmbeddingRows::Read(std::span<const int32_t> ids, const Ops& ops,
                           Reader& reader, float* out) {
  for (int32_t id : ids) {
    if (id < 0 || id >= table_.rows) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "token id %d is outside the vocabulary of %d rows", id, table_.rows));
    }
  }
  unique_.assign(ids.begin(), ids.end());
  std::sort(unique_.begin(), unique_.end());
  unique_.erase(std::unique(unique_.begin(), unique_.end()), unique_.end());
  CHECK(unique_.size() * row_room_ <= memory_.size());

  windows_.clear();
  for (size_t i = 0; i < unique_.size(); ++i) {
    const uint64_t begin =
        table_.extent.offset + static_cast<uint64_t>(unique_[i]) * row_bytes_;
    const uint64_t first = AlignDown(begin, alignment_);
    const uint64_t last = AlignUp(begin + row_bytes_, alignment_);
    windows_.push_back({table_.extent.file, first,
                        std::min(last, file_size_) - first,
                        memory_.data() + i * row_room_});
  }
  RETURN_IF_ERROR(ReadAndWait(reader, windows_, ReadPriority::kUrgent));

  const MatmulKernel& kernel = ops.MatmulFor(table_.type);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto index = static_cast<size_t>(
        std::lower_bound(unique_.begin(), unique_.end(), ids[i]) -
        unique_.begin());
    const uint64_t begin =
        table_.extent.offset + static_cast<uint64_t>(ids[i]) * row_bytes_;
    kernel.dequantize(windows_[index].destination + begin % alignment_,
                      table_.cols, out + i * static_cast<size_t>(table_.cols));
  }
  return absl::OkStatus();
}

}  // namespace coldstream
