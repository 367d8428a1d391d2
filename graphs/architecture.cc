#include "graphs/architecture.h"

#include <array>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

constexpr std::array kArchitectures = {
    Architecture{.name = "command-r",
                 .norm = NormKind::kLayer,
                 .rope = RopePairing::kAdjacent,
                 .parallel_residual = true,
                 .qkv_bias = false,
                 .logit_scale = true},
    Architecture{.name = "llama",
                 .norm = NormKind::kRms,
                 .rope = RopePairing::kAdjacent,
                 .parallel_residual = false,
                 .qkv_bias = false,
                 .logit_scale = false},
    Architecture{.name = "qwen2",
                 .norm = NormKind::kRms,
                 .rope = RopePairing::kHalves,
                 .parallel_residual = false,
                 .qkv_bias = true,
                 .logit_scale = false},
};

}  // namespace

StatusOr<const Architecture*> FindArchitecture(std::string_view name) {
  for (const Architecture& architecture : kArchitectures)
    if (architecture.name == name) return &architecture;
  return absl::UnimplementedError(absl::StrFormat(
      "architecture \"%s\" (general.architecture) is not supported; known: %s",
      std::string(name), KnownArchitectures()));
}

std::string KnownArchitectures() {
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += architecture.name;
  }
  return names;
}

}  // namespace coldstream
