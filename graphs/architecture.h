// Architectures as data: a new one is a row and a name map, not a new forward
// pass (graphs/decoder.h runs them all).
#ifndef COLDSTREAM_GRAPHS_ARCHITECTURE_H_
#define COLDSTREAM_GRAPHS_ARCHITECTURE_H_

#include <string>
#include <string_view>

#include "base/status.h"
#include "kernels/ops.h"

namespace coldstream {

struct Architecture {
  std::string_view name;  // general.architecture
  NormKind norm;
  RopePairing rope;
  // One norm feeds attention and FFN side by side (Wang & Komatsuzaki 2021,
  // GPT-J); false: each has its own and they follow one another.
  bool parallel_residual;
  bool qkv_bias;     // the file must carry q, k and v biases
  bool logit_scale;  // logits are multiplied by <arch>.logit_scale
};

// Errors: Unimplemented naming the architecture and those that are known.
StatusOr<const Architecture*> FindArchitecture(std::string_view name);

std::string KnownArchitectures();  // "command-r, llama, qwen2"

}  // namespace coldstream

#endif  // COLDSTREAM_GRAPHS_ARCHITECTURE_H_
