#include "tools/inspect_report.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

using nlohmann::json;

constexpr size_t kValueChars = 100;
constexpr size_t kFirstEntries = 8;

std::string ShapeText(const std::vector<uint64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

void AppendMetadata(const Metadata& metadata, std::string* out) {
  absl::StrAppendFormat(out, "\nmetadata: %d keys\n", metadata.size());
  for (const auto& [key, value] : metadata.values())
    absl::StrAppendFormat(out, "  %s = %s\n", key,
                          FormatMetadataValue(value, kValueChars));
}

bool SameSizes(const LayerBytes& a, const LayerBytes& b) {
  return a.attention == b.attention && a.ffn == b.ffn && a.other == b.other;
}

void AppendLayers(const ModelSummary& summary, std::string* out) {
  const bool has_other = std::ranges::any_of(
      summary.layers, [](const LayerBytes& layer) { return layer.other > 0; });
  absl::StrAppendFormat(out, "%-10s %14s %14s%s %14s\n", "layers", "attention",
                        "ffn", has_other ? "          other" : "", "each");
  for (size_t begin = 0; begin < summary.layers.size();) {
    const LayerBytes& layer = summary.layers[begin];
    size_t end = begin + 1;
    while (end < summary.layers.size() &&
           SameSizes(summary.layers[end], layer) &&
           summary.layers[end].layer == summary.layers[end - 1].layer + 1)
      ++end;
    const std::string numbers =
        end == begin + 1
            ? absl::StrCat(layer.layer)
            : absl::StrCat(layer.layer, "-", summary.layers[end - 1].layer);
    absl::StrAppendFormat(
        out, "%-10s %14s %14s%s %14s\n", numbers,
        FormatByteSize(layer.attention), FormatByteSize(layer.ffn),
        has_other ? absl::StrFormat(" %14s", FormatByteSize(layer.other)) : "",
        FormatByteSize(layer.total()));
    begin = end;
  }
}

void AppendTotals(const ModelSummary& summary, std::string* out) {
  const auto line = [out](const char* name, uint64_t bytes) {
    absl::StrAppendFormat(out, "%-10s %14s\n", name, FormatByteSize(bytes));
  };
  uint64_t layers = 0;
  for (const LayerBytes& layer : summary.layers) layers += layer.total();
  if (layers > 0) {
    out->append("\n");
    line("layers", layers);
  }
  line("embedding", summary.embedding);
  if (summary.head > 0) {
    line("head", summary.head);
  } else if (summary.embedding > 0) {
    absl::StrAppendFormat(out, "%-10s %14s\n", "head", "(embedding)");
  }
  line("other", summary.other);
  line("total", summary.bytes);
  absl::StrAppendFormat(out, "\n%-10s %14s %14s %14s\n", "type", "tensors",
                        "elements", "bytes");
  for (const TypeTotal& total : summary.types)
    absl::StrAppendFormat(out, "%-10s %14d %14d %14s\n",
                          InfoOf(total.type).name, total.tensors,
                          total.elements, FormatByteSize(total.bytes));
}

void AppendTensors(const Checkpoint& checkpoint, std::string* out) {
  size_t width = 0;
  for (const TensorInfo& tensor : checkpoint.tensors())
    width = std::max(width, tensor.name.size());
  const bool several = checkpoint.files().size() > 1;
  absl::StrAppendFormat(out, "\n%-*s  %-6s  %-20s %14s %15s%s\n",
                        static_cast<int>(width), "tensor", "type", "shape",
                        "bytes", "offset", several ? "  file" : "");
  for (const TensorInfo& tensor : checkpoint.tensors())
    absl::StrAppendFormat(
        out, "%-*s  %-6s  %-20s %14d %15d%s\n", static_cast<int>(width),
        tensor.name, InfoOf(tensor.type).name, ShapeText(tensor.shape),
        tensor.extent.length, tensor.extent.offset,
        several ? absl::StrFormat("  %d", tensor.extent.file) : "");
}

template <typename Array>
json ArrayJson(const Array& array, ArrayLength length) {
  const size_t shown = length == ArrayLength::kWhole
                           ? array.size()
                           : std::min(array.size(), kFirstEntries);
  json entries = json::array();
  for (size_t i = 0; i < shown; ++i) entries.push_back(array[i]);
  if (length == ArrayLength::kWhole) return entries;
  return {{"count", array.size()}, {"first", std::move(entries)}};
}

json MetadataJson(const Metadata& metadata, ArrayLength arrays) {
  json object = json::object();
  for (const auto& [key, value] : metadata.values()) {
    object[key] = std::visit(
        [arrays](const auto& v) -> json {
          using Value = std::decay_t<decltype(v)>;
          if constexpr (std::is_arithmetic_v<Value> ||
                        std::is_same_v<Value, std::string>) {
            return v;
          } else {
            return ArrayJson(v, arrays);
          }
        },
        value);
  }
  return object;
}

}  // namespace

std::string SummaryText(const ModelSummary& summary) {
  std::string out;
  if (!summary.layers.empty()) AppendLayers(summary, &out);
  AppendTotals(summary, &out);
  return out;
}

json SummaryJson(const ModelSummary& summary) {
  json layers = json::array();
  for (const LayerBytes& layer : summary.layers)
    layers.push_back({{"layer", layer.layer},
                      {"attention_bytes", layer.attention},
                      {"ffn_bytes", layer.ffn},
                      {"other_bytes", layer.other},
                      {"bytes", layer.total()}});
  json types = json::array();
  for (const TypeTotal& total : summary.types)
    types.push_back({{"type", InfoOf(total.type).name},
                     {"tensors", total.tensors},
                     {"elements", total.elements},
                     {"bytes", total.bytes}});
  return {
      {"layers", std::move(layers)},          {"types", std::move(types)},
      {"embedding_bytes", summary.embedding}, {"head_bytes", summary.head},
      {"other_bytes", summary.other},         {"tensor_count", summary.tensors},
      {"elements", summary.elements},         {"tensor_bytes", summary.bytes}};
}

std::string InspectText(const Checkpoint& checkpoint, TensorList tensors) {
  const ModelSummary summary = Summarise(checkpoint.tensors());
  std::string out;
  uint64_t file_bytes = 0;
  for (const auto& file : checkpoint.files()) {
    absl::StrAppend(&out, file->path(), "\n");
    file_bytes += file->size();
  }
  absl::StrAppendFormat(&out, "%s, %s, %d tensors, %d parameters\n",
                        checkpoint.format(), FormatByteSize(file_bytes),
                        summary.tensors, summary.elements);
  AppendMetadata(checkpoint.metadata(), &out);
  absl::StrAppend(&out, "\n", SummaryText(summary));
  if (tensors == TensorList::kShow) AppendTensors(checkpoint, &out);
  return out;
}

json InspectJson(const Checkpoint& checkpoint, ArrayLength arrays) {
  json object = SummaryJson(Summarise(checkpoint.tensors()));
  object["format"] = checkpoint.format();
  json files = json::array();
  for (const auto& file : checkpoint.files())
    files.push_back({{"path", file->path()}, {"bytes", file->size()}});
  object["files"] = std::move(files);
  object["warnings"] = checkpoint.warnings();
  object["metadata"] = MetadataJson(checkpoint.metadata(), arrays);
  json tensors = json::array();
  for (const TensorInfo& tensor : checkpoint.tensors())
    tensors.push_back({{"name", tensor.name},
                       {"type", InfoOf(tensor.type).name},
                       {"shape", tensor.shape},
                       {"bytes", tensor.extent.length},
                       {"offset", tensor.extent.offset},
                       {"file", tensor.extent.file}});
  object["tensors"] = std::move(tensors);
  return object;
}

}  // namespace coldstream
