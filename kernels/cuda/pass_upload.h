// What kernels must know about a pass, brought to the device once a pass: its
// tokens, their RoPE rows, and the lists of blocks that attend.
//
// Everything is packed into page-locked memory and goes in one copy. Send waits
// (on the host) for the copy of the pass before, whose bytes it overwrites;
// what kernels of that pass read on the device is safe by the order of the
// stream.
//
//   upload.Send(tokens, work, stream);
//   Rope(x, upload.rope(), ...);           // later on the same stream
#ifndef COLDSTREAM_KERNELS_CUDA_PASS_UPLOAD_H_
#define COLDSTREAM_KERNELS_CUDA_PASS_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/device.h"
#include "base/pinned_memory.h"
#include "base/status.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_work.h"
#include "kernels/cuda/device_tokens.h"
#include "kernels/pass_ops.h"

namespace coldstream::cuda {

class PassUpload {
 public:
  // The most bytes of one pass, on the device and on the host alike.
  static uint64_t BytesFor(const PassLimits& limits);

  // `memory`: BytesFor(limits) of device memory at a multiple of 256 bytes. It
  // and the device must outlive the upload. Errors: ResourceExhausted,
  // Internal.
  static StatusOr<std::unique_ptr<PassUpload>> Create(
      Device* device, const PassLimits& limits, std::span<std::byte> memory);
  // Waits for the last copy.
  ~PassUpload();

  // `tokens` and `work` within the limits; both may go when it returns.
  Status Send(const PassTokens& tokens, const AttentionWork& work,
              Stream* stream);

  // Of the latest Send: addresses of the device.
  const DeviceTokens& tokens() const { return tokens_; }
  const DeviceAttentionWork& work() const { return work_; }
  const float* rope() const { return rope_; }
  const int32_t* logit_rows() const { return logit_rows_; }
  int64_t logit_row_count() const { return logit_row_count_; }

 private:
  PassUpload(PinnedMemory host, std::span<std::byte> memory,
             std::unique_ptr<Event> copied);

  // Packs the values behind those before; their address on the device.
  template <typename T>
  const T* Pack(std::span<const T> values);

  PinnedMemory host_;
  const std::span<std::byte> memory_;
  const std::unique_ptr<Event> copied_;  // the latest copy
  uint64_t packed_ = 0;                  // bytes

  DeviceTokens tokens_;
  DeviceAttentionWork work_;
  const float* rope_ = nullptr;
  const int32_t* logit_rows_ = nullptr;
  int64_t logit_row_count_ = 0;
};

}  // namespace coldstream::cuda

#endif  // COLDSTREAM_KERNELS_CUDA_PASS_UPLOAD_H_
