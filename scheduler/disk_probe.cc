#include "scheduler/disk_probe.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/byte_units.h"
#include "base/host_memory.h"
#include "io/disk_identity.h"
#include "scheduler/file_sweep.h"

namespace coldstream {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kLeastMemory = 8 * kMiB;
constexpr uint64_t kSlots = 8;  // so that a chunk of any setting fits in one

struct Setting {
  uint64_t chunk_bytes;
  int depth;
};
// Smallest first. More than 32 MiB in flight, or less than 2, never won here.
constexpr Setting kSettings[] = {
    {kMiB / 2, 4}, {kMiB, 4},  {kMiB / 2, 16}, {kMiB, 8},
    {2 * kMiB, 8}, {kMiB, 16}, {8 * kMiB, 4},  {4 * kMiB, 8},
};
// A slice holds at least twice what is in flight: beginning and end would be
// most of it otherwise. Turns go on as long as there is time, and a disk so
// slow that it is not enough for kLeastTurns of all settings gets fewer
// settings.
constexpr double kSliceSeconds = 0.005;
constexpr uint64_t kFlightsPerSlice = 2;
constexpr int kLeastTurns = 3;
constexpr size_t kLeastSettings = 2;
constexpr double kOverrun = 1.25;  // of the time, for one setting more
// Behind the best by more than this after so many turns: out. (The median of
// three was a pause too often.)
constexpr double kLoser = 0.7;
constexpr size_t kFirstDrop = 5;
constexpr double kGood = 0.9;
constexpr double kNearBest = 0.98;
constexpr uint64_t kMostPilotBytes = 64 * kMiB;
constexpr double kPilotShare = 0.25;  // of the time, at most
// A file read faster than this says nothing of the disk.
constexpr double kLeastSeconds = 0.03;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool IsSmaller(const DiskPoint& a, const DiskPoint& b) {
  const auto key = [](const DiskPoint& p) {
    return std::tuple(p.bytes_in_flight(), p.depth, p.chunk_bytes);
  };
  return key(a) < key(b);
}

class Prober {
 public:
  Prober(std::shared_ptr<File> file, const DiskProbeOptions& options)
      : file_(std::move(file)), options_(options), begin_(Clock::now()) {}

  StatusOr<DiskProbe> Run() {
    RETURN_IF_ERROR(TakeMemory());
    ASSIGN_OR_RETURN(const double rate, Pilot());
    ChoosePoints(rate);
    for (size_t turn = 0; !candidates_.empty() && !OutOfTime(); ++turn) {
      RETURN_IF_ERROR(TakeTurn(turn));
      if (turn + 1 >= kFirstDrop) DropLosers();
    }
    return Conclude();
  }

 private:
  struct Candidate {
    DiskPoint point;
    std::vector<double> rates = {};  // by slice
    bool out = false;
  };

  Status TakeMemory() {
    const uint64_t bytes =
        AlignUp(std::max(options_.memory_bytes, kLeastMemory), kHugePageBytes);
    ASSIGN_OR_RETURN(slots_, HostMemory::Allocate(bytes, "probing the disk"));
    // Touched now, so that no slice pays for it.
    std::memset(slots_.data(), 0, bytes);
    if (!options_.compare_buffers) return absl::OkStatus();
    ASSIGN_OR_RETURN(small_pages_,
                     HostMemory::Allocate(bytes, "probing the disk"));
    (void)madvise(small_pages_.data(), bytes, MADV_NOHUGEPAGE);
    std::memset(small_pages_.data(), 0, bytes);
    return absl::OkStatus();
  }

  bool OutOfTime() const { return SecondsSince(begin_) >= options_.seconds; }

  // A stretch of the file of about `bytes`. Successive ones are spread over the
  // file by the golden ratio, so that none lies where one just was.
  FileStretch NextStretch(uint64_t bytes) {
    const uint64_t alignment = file_->window_alignment();
    bytes = std::min(AlignUp(bytes, alignment), file_->size());
    place_ = std::fmod(place_ + 0.6180339887498949, 1.0);
    const auto room = static_cast<double>(file_->size() - bytes);
    const uint64_t begin =
        AlignDown(static_cast<uint64_t>(place_ * room), alignment);
    return {0, begin, std::min(begin + bytes, file_->size())};
  }

  // Reads `bytes` with the candidate's setting and adds what that took.
  Status Measure(uint64_t bytes, Candidate* candidate) {
    if (options_.cancel != nullptr && *options_.cancel)
      return absl::CancelledError("probing the disk");
    DiskPoint& point = candidate->point;
    ReaderOptions reader_options = options_.reader;
    reader_options.chunk_bytes = point.chunk_bytes;
    reader_options.depth = point.depth;
    ASSIGN_OR_RETURN(const auto reader,
                     Reader::Create({file_}, reader_options));
    const std::span<std::byte> memory =
        point.buffers == ProbeBuffers::kSmallPages ? small_pages_.bytes()
                                                   : slots_.bytes();
    if (point.buffers == ProbeBuffers::kSlots)
      reader->RegisterBuffers({&memory, 1});
    point.registered = reader->registered_buffer_bytes() > 0;

    const FileStretch stretch = NextStretch(bytes);
    const Clock::time_point begin = Clock::now();
    RETURN_IF_ERROR(
        SweepFile(reader.get(), stretch, memory, memory.size() / kSlots));
    const double seconds = SecondsSince(begin);
    const uint64_t read = stretch.end - stretch.begin;
    candidate->rates.push_back(static_cast<double>(read) / seconds);
    point.bytes_per_second = Median(candidate->rates);
    point.seconds += seconds;
    point.bytes += read;
    ++point.slices;
    direct_ = reader->direct(0);
    backend_ = reader->backend_name();
    if (point.buffers == ProbeBuffers::kSlots) registered_ = point.registered;
    return absl::OkStatus();
  }

  // Bytes per second, roughly, with the reader's defaults: of ever longer
  // slices, since latency is all that a short one shows.
  StatusOr<double> Pilot() {
    for (uint64_t bytes = kMiB;; bytes *= 4) {
      Candidate pilot{{.chunk_bytes = ReaderOptions().chunk_bytes,
                       .depth = ReaderOptions().depth}};
      RETURN_IF_ERROR(Measure(bytes, &pilot));
      const DiskPoint& point = pilot.point;
      const bool whole = bytes >= file_->size();
      const double after_next = SecondsSince(begin_) + 4 * point.seconds;
      if (!whole && bytes < kMostPilotBytes &&
          after_next < kPilotShare * options_.seconds)
        continue;
      if (whole && point.seconds < kLeastSeconds) {
        doubt_ = absl::StrFormat(
            "the file is too small: its %d bytes are read in %.1f ms",
            file_->size(), 1e3 * point.seconds);
      }
      return point.bytes_per_second;
    }
  }

  uint64_t SliceBytes(const DiskPoint& point) const {
    return std::max(least_slice_, kFlightsPerSlice * point.bytes_in_flight());
  }

  // The settings that the memory can feed; on a slow disk only the smaller of
  // them, as many as there is time for.
  void ChoosePoints(double rate) {
    for (const Setting& setting : kSettings) {
      const DiskPoint point{.chunk_bytes = setting.chunk_bytes,
                            .depth = setting.depth};
      if (2 * point.bytes_in_flight() <= slots_.size())
        candidates_.push_back({point});
    }
    least_slice_ = std::max(kMiB, static_cast<uint64_t>(rate * kSliceSeconds));
    const double affordable =
        kOverrun * rate *
        std::max(0.0, options_.seconds - SecondsSince(begin_));
    const auto needed = [this] {
      double bytes = 0;
      for (const Candidate& candidate : candidates_)
        bytes += kLeastTurns * static_cast<double>(SliceBytes(candidate.point));
      return bytes;
    };
    while (candidates_.size() > kLeastSettings && needed() > affordable)
      candidates_.pop_back();
    if (options_.compare_buffers) AddOtherBuffers();
  }

  // At the largest setting of the reader's default chunk.
  void AddOtherBuffers() {
    DiskPoint point;
    for (const Candidate& candidate : candidates_) {
      if (candidate.point.chunk_bytes == kMiB) point = candidate.point;
    }
    if (point.depth == 0) return;
    if (registered_) {
      point.buffers = ProbeBuffers::kPlain;
      candidates_.push_back({point});
    }
    point.buffers = ProbeBuffers::kSmallPages;
    candidates_.push_back({point});
  }

  Status TakeTurn(size_t turn) {
    const size_t count = candidates_.size();
    for (size_t i = 0; i < count; ++i) {
      // Another one begins each turn.
      Candidate& candidate = candidates_[(turn + i) % count];
      if (candidate.out) continue;
      if (OutOfTime()) return absl::OkStatus();
      RETURN_IF_ERROR(Measure(SliceBytes(candidate.point), &candidate));
    }
    return absl::OkStatus();
  }

  double BestRate() const {
    double best = 0;
    for (const Candidate& candidate : candidates_) {
      if (candidate.point.buffers == ProbeBuffers::kSlots)
        best = std::max(best, candidate.point.bytes_per_second);
    }
    return best;
  }

  // Other buffers stay whatever they do: their figures are wanted.
  void DropLosers() {
    const double limit = kLoser * BestRate();
    for (Candidate& candidate : candidates_) {
      if (candidate.point.buffers == ProbeBuffers::kSlots &&
          candidate.point.bytes_per_second < limit)
        candidate.out = true;
    }
  }

  // Fills what is said of the points; the setting chosen, or null.
  const DiskPoint* Choose(DiskProbe* probe) const {
    const DiskPoint* chosen = nullptr;
    const double best = BestRate();
    double bytes = 0, seconds = 0;
    for (const Candidate& candidate : candidates_) {
      const DiskPoint& point = candidate.point;
      if (point.slices == 0) continue;
      probe->points.push_back(point);
      if (point.buffers != ProbeBuffers::kSlots) continue;
      if (point.bytes_per_second >= kGood * best) {
        bytes += static_cast<double>(point.bytes);
        seconds += point.seconds;
      }
      if (point.bytes_per_second >= kNearBest * best &&
          (chosen == nullptr || IsSmaller(point, *chosen)))
        chosen = &point;
    }
    if (seconds > 0) probe->bytes_per_second = bytes / seconds;
    return chosen;
  }

  DiskProbe Conclude() {
    DiskProbe probe;
    probe.direct = direct_;
    probe.registered = registered_;
    probe.backend = backend_;
    const DiskPoint* chosen = Choose(&probe);
    const DiskIdentity disk = IdentifyDisk(*file_);
    if (disk.in_memory) doubt_ = "the file is in memory: " + disk.Describe();
    if (doubt_.empty() && !direct_)
      doubt_ = "reads go through the page cache, which may have answered them";
    if (doubt_.empty() && chosen == nullptr)
      doubt_ = "there was no time to measure";
    probe.doubt = doubt_;
    const ReaderOptions defaults;
    const bool trusted = doubt_.empty();
    probe.chunk_bytes = trusted ? chosen->chunk_bytes : defaults.chunk_bytes;
    probe.depth = trusted ? chosen->depth : defaults.depth;
    return probe;
  }

  const std::shared_ptr<File> file_;
  const DiskProbeOptions& options_;
  const Clock::time_point begin_;
  HostMemory slots_;
  HostMemory small_pages_;
  std::vector<Candidate> candidates_;  // settings smallest first, then buffers
  uint64_t least_slice_ = 0;
  double place_ = 0;  // 0..1: where the latest stretch began
  bool direct_ = false;
  bool registered_ = false;
  std::string backend_;
  std::string doubt_;
};

}  // namespace

const char* ProbeBuffersName(ProbeBuffers buffers) {
  switch (buffers) {
    case ProbeBuffers::kSlots:
      return "slots";
    case ProbeBuffers::kPlain:
      return "plain";
    case ProbeBuffers::kSmallPages:
      return "4 KiB pages";
  }
  return "?";
}

StatusOr<DiskProbe> ProbeDisk(const std::shared_ptr<File>& file,
                              const DiskProbeOptions& options) {
  constexpr double kMostSeconds = 3600;
  // Written so that a NaN, which would never be over, is refused too.
  if (!(options.seconds > 0 && options.seconds <= kMostSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a disk probe of %f seconds, expected above 0 and at "
                        "most %.0f",
                        options.seconds, kMostSeconds));
  }
  if (file->size() == 0) {
    DiskProbe probe;
    probe.chunk_bytes = ReaderOptions().chunk_bytes;
    probe.depth = ReaderOptions().depth;
    probe.doubt = "the file is empty";
    return probe;
  }
  return Prober(file, options).Run();
}

}  // namespace coldstream
