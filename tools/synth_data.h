// The weights of a synthetic model, made piece by piece, in any order and on
// any number of threads, always the same for a seed.
//
// A tensor is cut into chunks of whole blocks; each chunk has a random stream
// of its own, derived from (seed, tensor, chunk).
// Thread-safety: const methods may be called from several threads at once.
// Lifetime: the model must outlive this.
#ifndef COLDSTREAM_TOOLS_SYNTH_DATA_H_
#define COLDSTREAM_TOOLS_SYNTH_DATA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/random_blocks.h"
#include "tools/synth_model.h"

namespace coldstream {

struct SynthChunk {
  size_t tensor = 0;    // index into SynthModel::tensors
  uint64_t offset = 0;  // in the tensor's bytes
  uint64_t bytes = 0;
  uint64_t index = 0;  // of the tensor's chunks
};

class SynthData {
 public:
  // No chunk is larger.
  static constexpr uint64_t kMaxChunkBytes = uint64_t{1} << 20;

  SynthData(const SynthModel& model, uint64_t seed);

  // Every chunk, in file order.
  const std::vector<SynthChunk>& chunks() const { return chunks_; }

  // Fills `out`, chunk.bytes long.
  void Fill(const SynthChunk& chunk, std::span<std::byte> out) const;

 private:
  uint64_t seed_;
  std::vector<SynthChunk> chunks_;
  std::vector<RandomBlocks> generators_;
  std::vector<size_t> generator_of_;  // by tensor, into generators_
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SYNTH_DATA_H_
