#include "tools/synth_data.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/check.h"
#include "tools/random_stream.h"

namespace coldstream {

SynthData::SynthData(const SynthModel& model, uint64_t seed) : seed_(seed) {
  // A model has thousands of tensors but few kinds of them.
  std::map<std::tuple<DType, double, double>, size_t> known;
  for (size_t t = 0; t < model.tensors.size(); ++t) {
    const SynthTensor& tensor = model.tensors[t];
    const auto [kind, is_new] =
        known.emplace(std::tuple(tensor.type, tensor.mean, tensor.stddev),
                      generators_.size());
    if (is_new)
      generators_.push_back(
          tensor.mean == 0 ? RandomBlocks(tensor.type, tensor.stddev)
                           : RandomBlocks::Floats(tensor.mean, tensor.stddev));
    generator_of_.push_back(kind->second);

    const uint64_t block = InfoOf(tensor.type).block_bytes;
    const uint64_t most = kMaxChunkBytes / block * block;
    const uint64_t total = tensor.bytes();
    for (uint64_t offset = 0, index = 0; offset < total;
         offset += most, ++index)
      chunks_.push_back({.tensor = t,
                         .offset = offset,
                         .bytes = std::min(most, total - offset),
                         .index = index});
  }
}

void SynthData::Fill(const SynthChunk& chunk, std::span<std::byte> out) const {
  CHECK(out.size() == chunk.bytes);
  const uint64_t tensor_seed = RandomStream::Derive(seed_, chunk.tensor);
  generators_[generator_of_[chunk.tensor]].Fill(
      RandomStream::Derive(tensor_seed, chunk.index), out);
}

}  // namespace coldstream
