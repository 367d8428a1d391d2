#include "tools/model_summary.h"

#include <charconv>
#include <map>
#include <string_view>

namespace coldstream {
namespace {

// "blk.12.attn_q.weight" -> 12, "attn_q.weight"; false for other names.
bool SplitBlockName(std::string_view name, int64_t* layer,
                    std::string_view* rest) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return false;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, *layer);
  if (error != std::errc() || *layer < 0 || stop == end || *stop != '.')
    return false;
  *rest = name.substr(static_cast<size_t>(stop + 1 - name.data()));
  return true;
}

uint64_t ElementsOf(const TensorInfo& tensor) {
  uint64_t elements = 1;
  for (const uint64_t dimension : tensor.shape) elements *= dimension;
  return elements;
}

}  // namespace

ModelSummary Summarise(std::span<const TensorInfo> tensors) {
  ModelSummary summary;
  std::map<int64_t, LayerBytes> layers;
  std::map<DType, TypeTotal> types;
  for (const TensorInfo& tensor : tensors) {
    const uint64_t bytes = tensor.extent.length;
    const std::string_view name = tensor.name;
    int64_t layer = 0;
    std::string_view rest;
    if (SplitBlockName(name, &layer, &rest)) {
      LayerBytes& of = layers[layer];
      of.layer = layer;
      (rest.starts_with("attn")  ? of.attention
       : rest.starts_with("ffn") ? of.ffn
                                 : of.other) += bytes;
    } else {
      (name.starts_with("token_embd") ? summary.embedding
       : name.starts_with("output.")  ? summary.head
                                      : summary.other) += bytes;
    }
    TypeTotal& total = types[tensor.type];
    total.type = tensor.type;
    total.tensors += 1;
    total.elements += ElementsOf(tensor);
    total.bytes += bytes;
    summary.tensors += 1;
    summary.elements += ElementsOf(tensor);
    summary.bytes += bytes;
  }
  for (const auto& [number, of] : layers) summary.layers.push_back(of);
  for (const auto& [type, total] : types) summary.types.push_back(total);
  return summary;
}

}  // namespace coldstream
