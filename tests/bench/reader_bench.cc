// The reader against fio on the same file, turn by turn, so that a shared
// disk's moods hit both: median GB/s of each and their ratio.
//
//   reader_bench FILE [--io uring|pread] [--depth N] [--chunk BYTES]
//                [--register 0|1] [--busy N] [--slot BYTES] [--part BYTES]
//                [--rounds N] [--fio 0|1]
//
// FILE should be several GiB. A turn reads one part of it, never the part that
// the other has just read, and who goes first alternates. `--busy N` keeps N
// threads computing meanwhile, as inference does. Without fio, or with --fio 0,
// only the reader is measured.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/host_memory.h"
#include "io/reader.h"
#include "scheduler/file_sweep.h"

namespace coldstream {
namespace {

struct BenchOptions {
  std::string path;
  ReaderOptions reader;
  bool register_buffers = true;
  int busy_threads = 0;
  uint64_t slot_bytes = uint64_t{64} << 20;
  int slots = 3;
  uint64_t part_bytes = uint64_t{1} << 30;
  int rounds = 9;
  bool fio = true;
};

double Seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) +
           1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Threads that compute as long as they live.
class BusyThreads {
 public:
  explicit BusyThreads(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        std::vector<float> data(1 << 20, 1.0f);
        float sum = 0;
        while (!stop_) {
          for (float& value : data) sum += value *= 0.999f;
        }
        sink_ = sum;
      });
    }
  }
  ~BusyThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<float> sink_{0};
  std::vector<std::thread> threads_;
};

double FioGigabytes(const BenchOptions& options, uint64_t begin) {
  const std::string command =
      "fio --name=read --filename='" + options.path +
      "' --readonly --rw=read --direct=1 --ioengine=io_uring --fixedbufs=1 "
      "--bs=" +
      std::to_string(options.reader.chunk_bytes) +
      " --iodepth=" + std::to_string(options.reader.depth) +
      " --offset=" + std::to_string(begin) +
      " --size=" + std::to_string(options.part_bytes) + " --minimal 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return 0;
  char line[8192] = {};
  const bool got = fgets(line, sizeof(line), pipe) != nullptr;
  pclose(pipe);
  // Terse version 3: the seventh field is the bandwidth in KiB/s.
  std::string_view rest(line);
  for (int field = 1; got && field < 7; ++field) {
    const size_t semicolon = rest.find(';');
    if (semicolon == std::string_view::npos) return 0;
    rest.remove_prefix(semicolon + 1);
  }
  return std::strtod(std::string(rest).c_str(), nullptr) * 1024 / 1e9;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

Status Run(const BenchOptions& options) {
  ASSIGN_OR_RETURN(auto file, File::Open(options.path, DirectMode::kAuto));
  ASSIGN_OR_RETURN(
      const HostMemory memory,
      HostMemory::Allocate(
          options.slot_bytes * static_cast<uint64_t>(options.slots),
          "the slots"));
  const std::span<std::byte> slots = memory.bytes();
  ASSIGN_OR_RETURN(auto reader, Reader::Create({file}, options.reader));
  if (options.register_buffers) reader->RegisterBuffers({&slots, 1});
  for (const std::string& warning : reader->warnings()) {
    std::fprintf(stderr, "%s\n", warning.c_str());
  }
  const BusyThreads busy(options.busy_threads);
  const uint64_t parts = file->size() / options.part_bytes;
  if (parts < 2) return absl::InvalidArgumentError("the file is too small");
  std::vector<double> ours, fio;
  double cpu_ms = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const uint64_t part = static_cast<uint64_t>(round) % parts;
    const uint64_t other = (part + parts / 2) % parts;
    const auto run_fio = [&] {
      if (options.fio) {
        fio.push_back(FioGigabytes(options, other * options.part_bytes));
      }
    };
    if (round % 2 == 0) run_fio();
    const double cpu = CpuSeconds();
    const double start = Seconds();
    const uint64_t begin = part * options.part_bytes;
    RETURN_IF_ERROR(SweepFile(reader.get(),
                              {0, begin, begin + options.part_bytes}, slots,
                              options.slot_bytes));
    const double gigabytes = static_cast<double>(options.part_bytes) / 1e9;
    ours.push_back(gigabytes / (Seconds() - start));
    cpu_ms += 1e3 * (CpuSeconds() - cpu) / gigabytes / options.rounds;
    if (round % 2 == 1) run_fio();
    std::printf("%.3f/%.3f ", ours.back(), fio.empty() ? 0 : fio.back());
  }
  std::printf("\n%.1f ms CPU a GB; ", cpu_ms);
  std::printf(
      "%s, %d x %llu bytes, %llu bytes registered, %d busy threads: "
      "median %.3f GB/s",
      reader->backend_name(), options.reader.depth,
      static_cast<unsigned long long>(options.reader.chunk_bytes),
      static_cast<unsigned long long>(reader->registered_buffer_bytes()),
      options.busy_threads, Median(ours));
  if (Median(fio) > 0) {
    std::printf(", fio %.3f GB/s, ratio %.1f %%", Median(fio),
                100 * Median(ours) / Median(fio));
  }
  std::printf("\n");
  return absl::OkStatus();
}

bool Parse(int argc, char** argv, BenchOptions* options) {
  if (argc < 2 || argc % 2 != 0) return false;
  options->path = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    const long long number = std::atoll(argv[i + 1]);
    if (flag == "--io") {
      options->reader.backend = std::string_view(argv[i + 1]) == "pread"
                                    ? IoBackendKind::kPread
                                    : IoBackendKind::kUring;
    } else if (flag == "--depth") {
      options->reader.depth = static_cast<int>(number);
    } else if (flag == "--chunk") {
      options->reader.chunk_bytes = static_cast<uint64_t>(number);
    } else if (flag == "--slot") {
      options->slot_bytes = static_cast<uint64_t>(number);
    } else if (flag == "--part") {
      options->part_bytes = static_cast<uint64_t>(number);
    } else if (flag == "--register") {
      options->register_buffers = number != 0;
    } else if (flag == "--busy") {
      options->busy_threads = static_cast<int>(number);
    } else if (flag == "--rounds") {
      options->rounds = static_cast<int>(number);
    } else if (flag == "--fio") {
      options->fio = number != 0;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace coldstream

int main(int argc, char** argv) {
  coldstream::BenchOptions options;
  if (!coldstream::Parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: reader_bench FILE [--io uring|pread] "
                 "[--depth N] [--chunk BYTES] [--slot BYTES] "
                 "[--part BYTES] [--register 0|1] [--busy N] [--rounds N] "
                 "[--fio 0|1]\n");
    return 2;
  }
  const coldstream::Status status = coldstream::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", coldstream::MessageOf(status).c_str());
  return 1;
}
