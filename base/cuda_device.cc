// The first CUDA device, through the runtime API alone, linked statically: a
// binary starts where there is no driver, and says so when asked for the card.
//
// No work goes on the default stream: it would wait for all others. Every error
// is taken from the runtime (cudaGetLastError) before it is returned, so that
// the next call does not report it again; an error that broke the context
// (a kernel's bad address) comes back from every later call all the same.
// The current device of each thread is the first one unless somebody else's
// code changed it; CUDA_VISIBLE_DEVICES chooses which card is first.
// Source: CUDA Runtime API reference, "Error Handling", "Stream Management".

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"
#include "base/align.h"
#include "base/device.h"
#include "base/host_memory.h"

namespace coldstream {
namespace {

// The oldest card that this toolkit compiles for.
constexpr int kLeastComputeCapability = 75;

std::string NameOf(cudaError_t error) {
  return absl::StrFormat("%s (%s)", cudaGetErrorString(error),
                         cudaGetErrorName(error));
}

// "13.0" of 13000.
std::string VersionName(int version) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
}

// Internal; ResourceExhausted for memory.
Status Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  const std::string message =
      absl::StrFormat("CUDA: %s: %s", what, NameOf(error));
  return error == cudaErrorMemoryAllocation
             ? absl::ResourceExhaustedError(message)
             : absl::InternalError(message);
}

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  ~CudaEvent() override { (void)Check(cudaEventDestroy(event_), "an event"); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  bool Ready() const override {
    const cudaError_t error = cudaEventQuery(event_);
    if (error != cudaSuccess) cudaGetLastError();
    return error != cudaErrorNotReady;  // Wait tells what failed
  }
  Status Wait() override {
    return Check(cudaEventSynchronize(event_), "waiting for an event");
  }
  StatusOr<double> SecondsSince(const Event& earlier) const override {
    const auto& from = static_cast<const CudaEvent&>(earlier);
    if (!recorded_ || !from.recorded_)
      return absl::FailedPreconditionError("an event was never recorded");
    float milliseconds = 0;
    const cudaError_t error =
        cudaEventElapsedTime(&milliseconds, from.event_, event_);
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return absl::FailedPreconditionError("an event is not ready");
    }
    RETURN_IF_ERROR(Check(error, "the time between two events"));
    return 1e-3 * double{milliseconds};
  }

  Status RecordOn(cudaStream_t stream) {
    RETURN_IF_ERROR(
        Check(cudaEventRecord(event_, stream), "recording an event"));
    recorded_ = true;
    return absl::OkStatus();
  }
  cudaEvent_t get() const { return event_; }

 private:
  const cudaEvent_t event_;
  bool recorded_ = false;
};

class CudaStream final : public Stream {
 public:
  explicit CudaStream(cudaStream_t stream) : stream_(stream) {}
  ~CudaStream() override {
    (void)Synchronize();
    (void)Check(cudaStreamDestroy(stream_), "a stream");
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Status CopyToDevice(std::byte* to, const std::byte* from,
                      size_t bytes) override {
    return Check(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_),
        "a copy to the device");
  }
  Status CopyToHost(std::byte* to, const std::byte* from,
                    size_t bytes) override {
    return Check(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
        "a copy to the host");
  }
  Status Record(Event* event) override {
    return static_cast<CudaEvent*>(event)->RecordOn(stream_);
  }
  Status Wait(const Event& event) override {
    return Check(cudaStreamWaitEvent(
                     stream_, static_cast<const CudaEvent&>(event).get(), 0),
                 "a stream's wait for an event");
  }
  Status Synchronize() override {
    return Check(cudaStreamSynchronize(stream_), "the work of a stream");
  }
  void* native_handle() override { return stream_; }

  Status Zero(void* memory, size_t bytes) {
    RETURN_IF_ERROR(Check(cudaMemsetAsync(memory, 0, bytes, stream_),
                          "clearing device memory"));
    return Synchronize();
  }

 private:
  const cudaStream_t stream_;
};

// Non-blocking: does not wait for the default stream of others in the process.
StatusOr<std::unique_ptr<CudaStream>> NewCudaStream() {
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(
      Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
            "a new stream"));
  return std::make_unique<CudaStream>(stream);
}

class CudaDevice final : public Device {
 public:
  CudaDevice(std::string name, std::unique_ptr<CudaStream> zeroing)
      : name_(std::move(name)), zeroing_(std::move(zeroing)) {}

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  const char* name() const override { return name_.c_str(); }
  StatusOr<DeviceMemoryInfo> MemoryInfo() override {
    size_t free = 0;
    size_t total = 0;
    RETURN_IF_ERROR(Check(cudaMemGetInfo(&free, &total), "the free memory"));
    return DeviceMemoryInfo{free, total};
  }
  StatusOr<DeviceMemory> Allocate(size_t bytes, const char* what) override;
  Status RegisterHostMemory(std::span<std::byte> memory) override;
  void UnregisterHostMemory(std::span<std::byte> memory) override {
    (void)Check(cudaHostUnregister(memory.data()), "unregistering memory");
  }
  StatusOr<std::unique_ptr<Stream>> NewStream() override {
    return NewCudaStream();
  }
  // Who waits for an event sleeps: it may hold a thread that computes else.
  StatusOr<std::unique_ptr<Event>> NewEvent() override {
    cudaEvent_t event = nullptr;
    RETURN_IF_ERROR(
        Check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync),
              "a new event"));
    return std::make_unique<CudaEvent>(event);
  }

 private:
  const std::string name_;
  const std::unique_ptr<CudaStream> zeroing_;
};

void FreeDeviceMemory(void* memory) {
  (void)Check(cudaFree(memory), "freeing device memory");
}

StatusOr<DeviceMemory> CudaDevice::Allocate(size_t bytes, const char* what) {
  if (bytes == 0) return DeviceMemory();
  // Large blocks of cudaMalloc lie on pages of 2 MiB; small ones are aligned to
  // 512 bytes, and need room to begin on a page.
  for (const size_t head_room : {size_t{0}, kPageBytes}) {
    void* memory = nullptr;
    const Status status = Check(cudaMalloc(&memory, bytes + head_room), what);
    if (!status.ok()) {
      const StatusOr<DeviceMemoryInfo> info = MemoryInfo();
      return Status(status.code(),
                    absl::StrFormat("%s: %d bytes of device memory, %d free",
                                    MessageOf(status), bytes,
                                    info.ok() ? info->free : uint64_t{0}));
    }
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    const size_t skip = AlignUp(address, kPageBytes) - address;
    DeviceMemory owned({static_cast<std::byte*>(memory) + skip, bytes},
                       {memory, &FreeDeviceMemory});
    if (skip > head_room) continue;
    RETURN_IF_ERROR(zeroing_->Zero(owned.data(), bytes));
    return owned;
  }
  return absl::InternalError("CUDA: memory is not aligned as it should be");
}

Status CudaDevice::RegisterHostMemory(std::span<std::byte> memory) {
  const cudaError_t error =
      cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterDefault);
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  const std::string message =
      absl::StrFormat("CUDA: %d bytes of host memory were not pinned: %s",
                      memory.size(), NameOf(error));
  return error == cudaErrorMemoryAllocation
             ? absl::ResourceExhaustedError(message)
             : absl::UnavailableError(message);
}

// Why the runtime found nothing to run on, and what to do.
Status WhyUnavailable(cudaError_t error) {
  cudaGetLastError();
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  cudaGetLastError();
  if (driver == 0) {
    return absl::UnavailableError(
        "no CUDA driver was found (libcuda.so.1); install NVIDIA's driver, or "
        "use --device cpu");
  }
  const std::string versions = absl::StrFormat(
      "driver %s, runtime %s", VersionName(driver), VersionName(runtime));
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string hidden =
      visible == nullptr
          ? std::string()
          : absl::StrFormat("; CUDA_VISIBLE_DEVICES is \"%s\"", visible);
  const char* advice = "see what nvidia-smi says";
  if (error == cudaErrorInsufficientDriver ||
      error == cudaErrorSystemDriverMismatch ||
      error == cudaErrorCompatNotSupportedOnDevice) {
    advice = "update the driver, and restart after an update";
  } else if (error == cudaErrorDevicesUnavailable ||
             error == cudaErrorMemoryAllocation) {
    advice =
        "another process holds it, or its compute mode (nvidia-smi -q -d "
        "COMPUTE) forbids more";
  }
  return absl::UnavailableError(
      absl::StrFormat("CUDA does not start: %s; %s%s; %s, or use --device cpu",
                      NameOf(error), versions, hidden, advice));
}

}  // namespace

StatusOr<std::unique_ptr<Device>> CreateCudaDevice() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  cudaDeviceProp properties = {};
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, 0);
  if (error == cudaSuccess) {
    const int capability = properties.major * 10 + properties.minor;
    if (capability < kLeastComputeCapability) {
      return absl::UnavailableError(absl::StrFormat(
          "%s has compute capability %d.%d; this build needs %d.%d or newer",
          properties.name, properties.major, properties.minor,
          kLeastComputeCapability / 10, kLeastComputeCapability % 10));
    }
    error = cudaSetDevice(0);
  }
  // Makes the context now, so that a card that others hold is an error here.
  if (error == cudaSuccess) error = cudaFree(nullptr);
  if (error != cudaSuccess) return WhyUnavailable(error);
  ASSIGN_OR_RETURN(auto zeroing, NewCudaStream());
  return std::make_unique<CudaDevice>(properties.name, std::move(zeroing));
}

}  // namespace coldstream
