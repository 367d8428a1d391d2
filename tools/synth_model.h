// A model of given shape as the tensors and metadata its file will hold.
//
// Weights get a standard deviation of 1 / sqrt(row length), so that a product
// keeps the size of its input and activations stay finite through any depth;
// norms are near 1, except the last, which sets the spread of the logits.
#ifndef COLDSTREAM_TOOLS_SYNTH_MODEL_H_
#define COLDSTREAM_TOOLS_SYNTH_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "tools/model_shape.h"
#include "tools/quant_mix.h"

namespace coldstream {

struct SynthTensor {
  std::string name;
  DType type = DType::kF32;
  std::vector<uint64_t> shape;  // as in GGUF: [in, out], or [n]
  double mean = 0;              // other than zero only for F32
  double stddev = 0;

  uint64_t bytes() const;
};

struct SynthModel {
  ModelShape shape;
  QuantMix mix;
  std::vector<SynthTensor> tensors;  // in file order: a layer's attention
                                     // together, then its FFN
  // One line for each kind of tensor whose type had to give way.
  std::vector<std::string> fallbacks;

  uint64_t tensor_bytes() const;
};

SynthModel DescribeSynthModel(const ModelShape& shape, const QuantMix& mix);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SYNTH_MODEL_H_
