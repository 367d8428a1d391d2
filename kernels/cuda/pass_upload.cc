#include "kernels/cuda/pass_upload.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace coldstream::cuda {
namespace {

// Arrays begin at multiples of this, in the packed bytes as on the device.
constexpr uint64_t kAlignment = 16;

uint64_t Padded(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
uint64_t BytesOf(int64_t count) {
  return Padded(static_cast<uint64_t>(count) * sizeof(T));
}

}  // namespace

// A sequence of the pass has a token at least.
uint64_t PassUpload::BytesFor(const PassLimits& limits) {
  return BytesOf<int64_t>(limits.tokens) +
         BytesOf<int32_t>(limits.tokens) +      // sequence
         BytesOf<int32_t>(limits.tokens + 1) +  // block_begin
         BytesOf<int32_t>(limits.blocks) +
         BytesOf<float>(limits.tokens * limits.rot_dim) +
         BytesOf<int32_t>(limits.logit_rows) +
         BytesOf<DecodeItem>(AttentionWork::MostDecodeItems(limits)) +
         BytesOf<CombineItem>(AttentionWork::MostCombineItems(limits)) +
         BytesOf<PrefillTile>(AttentionWork::MostTiles(limits));
}

StatusOr<std::unique_ptr<PassUpload>> PassUpload::Create(
    Device* device, const PassLimits& limits, std::span<std::byte> memory) {
  const uint64_t bytes = BytesFor(limits);
  CHECK(memory.size() >= bytes);
  ASSIGN_OR_RETURN(
      PinnedMemory host,
      PinnedMemory::Allocate(device, bytes, "the description of a pass"));
  ASSIGN_OR_RETURN(std::unique_ptr<Event> copied, device->NewEvent());
  return std::unique_ptr<PassUpload>(
      new PassUpload(std::move(host), memory, std::move(copied)));
}

PassUpload::PassUpload(PinnedMemory host, std::span<std::byte> memory,
                       std::unique_ptr<Event> copied)
    : host_(std::move(host)), memory_(memory), copied_(std::move(copied)) {}

PassUpload::~PassUpload() { (void)copied_->Wait(); }

template <typename T>
const T* PassUpload::Pack(std::span<const T> values) {
  const uint64_t at = packed_;
  packed_ += Padded(values.size_bytes());
  CHECK(packed_ <= host_.size() && packed_ <= memory_.size());
  if (!values.empty())
    std::memcpy(host_.data() + at, values.data(), values.size_bytes());
  return reinterpret_cast<const T*>(memory_.data() + at);
}

Status PassUpload::Send(const PassTokens& tokens, const AttentionWork& work,
                        Stream* stream) {
  RETURN_IF_ERROR(copied_->Wait());
  packed_ = 0;
  tokens_.count = static_cast<int64_t>(tokens.positions.size());
  tokens_.positions = Pack(tokens.positions);
  tokens_.sequence = Pack(tokens.sequence);
  tokens_.block_begin = Pack(tokens.block_begin);
  tokens_.blocks = Pack(tokens.blocks);
  rope_ = Pack(tokens.rope);
  logit_rows_ = Pack(tokens.logit_rows);
  logit_row_count_ = static_cast<int64_t>(tokens.logit_rows.size());
  work_ = {.decode = Pack(work.decode()),
           .decode_count = static_cast<int64_t>(work.decode().size()),
           .combine = Pack(work.combine()),
           .combine_count = static_cast<int64_t>(work.combine().size()),
           .tiles = Pack(work.tiles()),
           .tile_count = static_cast<int64_t>(work.tiles().size())};
  RETURN_IF_ERROR(stream->CopyToDevice(memory_.data(), host_.data(), packed_));
  return stream->Record(copied_.get());
}

}  // namespace coldstream::cuda
