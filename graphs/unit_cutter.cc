#include "graphs/unit_cutter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/check.h"

namespace coldstream {
namespace {

constexpr uint64_t kRowStep = 64;

// The unit being filled, and the matrices in it.
struct OpenUnit {
  WeightUnit unit;
  std::vector<MatrixRows> rows;
  uint64_t bytes = 0;
};

void Add(const Matrix& matrix, uint64_t row_begin, uint64_t rows,
         OpenUnit* open) {
  const TensorInfo& tensor = *matrix.tensor;
  const uint64_t row_bytes =
      RowBytes(tensor.type, static_cast<uint64_t>(tensor.cols()));
  const auto part = static_cast<int>(open->unit.parts.size());
  open->unit.parts.push_back(
      {{tensor.extent.file, tensor.extent.offset + row_begin * row_bytes,
        rows * row_bytes},
       0});
  const auto begin = static_cast<int64_t>(row_begin);
  const auto count = static_cast<int64_t>(rows);
  open->rows.push_back({matrix.kind,
                        matrix.layer,
                        begin,
                        begin + count == tensor.rows(),
                        {part, tensor.type, count, tensor.cols()}});
  open->bytes += rows * row_bytes;
}

}  // namespace

void CutIntoUnits(const std::string& name, std::span<const Matrix> matrices,
                  uint64_t unit_bytes, WeightMap* map) {
  CHECK(unit_bytes > 0);
  uint64_t total = 0;
  for (const Matrix& matrix : matrices) total += matrix.tensor->extent.length;
  const uint64_t pieces =
      std::max<uint64_t>(1, (total + unit_bytes - 1) / unit_bytes);
  const uint64_t share = (total + pieces - 1) / pieces;

  std::vector<OpenUnit> units(1);
  for (const Matrix& matrix : matrices) {
    const auto all = static_cast<uint64_t>(matrix.tensor->rows());
    const uint64_t row_bytes = matrix.tensor->extent.length / all;
    for (uint64_t row = 0; row < all;) {
      if (units.back().bytes >= share) units.emplace_back();
      const uint64_t wanted =
          (share - units.back().bytes + row_bytes - 1) / row_bytes;
      const uint64_t end =
          std::min(all, AlignUp(row + std::max<uint64_t>(wanted, 1), kRowStep));
      Add(matrix, row, end - row, &units.back());
      row = end;
    }
  }
  for (size_t i = 0; i < units.size(); ++i) {
    units[i].unit.name =
        units.size() == 1 ? name : absl::StrFormat("%s.%d", name, i);
    map->units.push_back(std::move(units[i].unit));
    map->matrices.push_back(std::move(units[i].rows));
  }
}

}  // namespace coldstream
