#include "kernels/kv_type.h"

#include "absl/strings/str_format.h"

namespace coldstream {

StatusOr<KvType> ParseKvType(std::string_view name) {
  for (const KvType type : {KvType::kF16, KvType::kQ8_0})
    if (name == NameOf(type)) return type;
  return absl::InvalidArgumentError(
      absl::StrFormat("kv_type: expected %s or %s, got \"%s\"",
                      NameOf(KvType::kF16), NameOf(KvType::kQ8_0), name));
}

}  // namespace coldstream
