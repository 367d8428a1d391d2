#include "scheduler/upload_probe.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "base/pinned_memory.h"

namespace coldstream {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCopies = 8;  // of a round
constexpr int kLeastRounds = 3;

struct Buffers {
  std::array<PinnedMemory, 2> host;
  std::array<DeviceMemory, 2> device;
};

StatusOr<Buffers> TakeBuffers(Device* device, size_t bytes) {
  Buffers buffers;
  for (size_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(buffers.host[i],
                     PinnedMemory::Allocate(device, bytes, "upload probe"));
    // Pages that were never written share one page of zeros.
    std::fill(buffers.host[i].bytes().begin(), buffers.host[i].bytes().end(),
              std::byte{1});
    ASSIGN_OR_RETURN(buffers.device[i],
                     device->Allocate(bytes, "upload probe"));
  }
  return buffers;
}

// Seconds of the device's clock for one round.
StatusOr<double> CopyOnce(Device* device, Stream* stream,
                          const Buffers& buffers, size_t bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Event> begin, device->NewEvent());
  ASSIGN_OR_RETURN(const std::unique_ptr<Event> end, device->NewEvent());
  RETURN_IF_ERROR(stream->Record(begin.get()));
  for (size_t i = 0; i < kCopies; ++i) {
    RETURN_IF_ERROR(stream->CopyToDevice(buffers.device[i % 2].data(),
                                         buffers.host[i % 2].data(), bytes));
  }
  RETURN_IF_ERROR(stream->Record(end.get()));
  RETURN_IF_ERROR(stream->Synchronize());
  return end->SecondsSince(*begin);
}

StatusOr<UploadProbe> CopyRounds(Device* device, Stream* stream,
                                 const Buffers& buffers,
                                 const UploadProbeOptions& options) {
  UploadProbe probe;
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  for (int round = 0; round < kLeastRounds || elapsed() < options.seconds;
       ++round) {
    ASSIGN_OR_RETURN(const double seconds,
                     CopyOnce(device, stream, buffers, options.copy_bytes));
    const uint64_t bytes = kCopies * options.copy_bytes;
    probe.bytes += bytes;
    if (seconds > 0) {
      probe.bytes_per_second = std::max(probe.bytes_per_second,
                                        static_cast<double>(bytes) / seconds);
    }
  }
  return probe;
}

}  // namespace

StatusOr<UploadProbe> ProbeUpload(Device* device,
                                  const UploadProbeOptions& options) {
  ASSIGN_OR_RETURN(const Buffers buffers,
                   TakeBuffers(device, options.copy_bytes));
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device->NewStream());
  StatusOr<UploadProbe> probe =
      CopyRounds(device, stream.get(), buffers, options);
  if (!probe.ok()) {
    SettleStream(stream.get());
    return probe;
  }
  for (const PinnedMemory& host : buffers.host)
    if (!host.pinned()) probe->doubt = MessageOf(host.refusal());
  return probe;
}

}  // namespace coldstream
