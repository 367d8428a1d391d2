#include "runtime/disk_contention.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "base/align.h"
#include "base/host_memory.h"
#include "runtime/product_bench.h"
#include "scheduler/file_sweep.h"

namespace coldstream {
namespace {

constexpr uint64_t kSlotBytes = uint64_t{16} << 20;
constexpr uint64_t kMemoryBytes = 3 * kSlotBytes;
constexpr uint64_t kStretchBytes = uint64_t{64} << 20;
constexpr size_t kRounds = 3;
constexpr std::chrono::milliseconds kAlone{150};
// Where a virtual machine has a quota of processor time and the host serves its
// disk from the same, it is all there for some milliseconds and then stands
// still until the next period of 100: several periods, and the mean of them.
constexpr double kBesideSeconds = 0.4;

// Reads the file over and over, from Begin to End.
class Reading {
 public:
  Reading(Reader* reader, const File& file, std::span<std::byte> memory)
      : reader_(reader), file_(file), memory_(memory) {}
  ~Reading() { (void)End().ok(); }

  void Begin() {
    stop_.store(false);
    bytes_ = 0;
    begin_ = Clock::now();
    thread_ = std::thread([this] { Run(); });
  }
  // Bytes a second since Begin.
  StatusOr<double> End() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
    RETURN_IF_ERROR(status_);
    const std::chrono::duration<double> seconds = Clock::now() - begin_;
    return static_cast<double>(bytes_) / seconds.count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Run() {
    while (!stop_.load() && status_.ok()) {
      const uint64_t end = std::min(file_.size(), next_ + kStretchBytes);
      status_ = SweepFile(reader_, {0, next_, end}, memory_, kSlotBytes);
      bytes_ += end - next_;
      next_ = end == file_.size() ? 0 : end;
    }
  }

  Reader* const reader_;
  const File& file_;
  const std::span<std::byte> memory_;
  uint64_t next_ = 0;
  uint64_t bytes_ = 0;
  Clock::time_point begin_;
  Status status_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The type that most of the weights have.
DType MainType(const WeightMap& weights) {
  std::map<DType, uint64_t> bytes;
  for (const auto& unit : weights.matrices)
    for (const MatrixRows& rows : unit)
      bytes[rows.weight.type] +=
          RowBytes(rows.weight.type, static_cast<uint64_t>(rows.weight.cols)) *
          static_cast<uint64_t>(rows.weight.rows);
  return std::max_element(
             bytes.begin(), bytes.end(),
             [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

StatusOr<Contention> MeasureDiskContention(const Model& model, int threads,
                                           const ReaderOptions& options) {
  ASSIGN_OR_RETURN(const Ops* ops, SelectOps());
  Parallel parallel(threads);
  ASSIGN_OR_RETURN(ProductBench bench,
                   ProductBench::Create(ops, &parallel, /*max_tokens=*/1));
  ASSIGN_OR_RETURN(const HostMemory slots,
                   HostMemory::Allocate(kMemoryBytes, "slots"));
  const auto& files = model.checkpoint().files();
  ASSIGN_OR_RETURN(const auto reader, Reader::Create(files, options));
  const std::span<std::byte> memory = slots.bytes();
  reader->RegisterBuffers({&memory, 1});
  Reading reading(reader.get(), *files.front(), memory);
  const DType type = MainType(model.weights());
  std::array<double, kRounds> compute = {}, disk = {};
  for (size_t round = 0; round < kRounds; ++round) {
    const double compute_alone = bench.MeanSecondsPerByte(
        type, 1, 1e-3 * static_cast<double>(kAlone.count()));
    reading.Begin();
    std::this_thread::sleep_for(kAlone);
    ASSIGN_OR_RETURN(const double disk_alone, reading.End());
    reading.Begin();
    const double compute_beside =
        bench.MeanSecondsPerByte(type, 1, kBesideSeconds);
    ASSIGN_OR_RETURN(const double disk_beside, reading.End());
    compute[round] = compute_beside / compute_alone;
    disk[round] = disk_alone / disk_beside;
  }
  const auto median = [](std::array<double, kRounds>& values) {
    std::sort(values.begin(), values.end());
    return std::max(1.0, values[kRounds / 2]);
  };
  return Contention{median(compute), median(disk)};
}

}  // namespace coldstream
