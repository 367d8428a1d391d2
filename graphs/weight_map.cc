#include "graphs/weight_map.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace coldstream {
namespace {

// Gaps up to this size are read along with their neighbours.
constexpr uint64_t kMaxGapBytes = 64 << 10;

// Takes tensors from the checkpoint, checks their shapes and remembers which
// were taken.
class TensorTaker {
 public:
  explicit TensorTaker(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint) {}

  // Adds tensor `name`, of shape [cols] or [cols, rows], to the unit.
  StatusOr<WeightRef> Take(const std::string& name, int64_t cols, int64_t rows,
                           WeightUnit* unit) {
    ASSIGN_OR_RETURN(const TensorInfo* tensor, checkpoint_.Get(name));
    if (tensor->cols() != cols || tensor->rows() != rows) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tensor %s has shape [%d, %d], expected [%d, %d]",
                          name, tensor->cols(), tensor->rows(), cols, rows));
    }
    taken_.insert(name);
    unit->parts.push_back({tensor->extent, 0});
    return WeightRef{static_cast<int>(unit->parts.size()) - 1, tensor->type,
                     rows, cols};
  }

  StatusOr<WeightRef> TakeIfThere(const std::string& name, int64_t cols,
                                  WeightUnit* unit) {
    if (checkpoint_.Find(name) == nullptr) return WeightRef{};
    return Take(name, cols, 1, unit);
  }

  void MarkTaken(const std::string& name) { taken_.insert(name); }

  Status CheckAllTaken() const {
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      if (taken_.contains(tensor.name)) continue;
      return absl::UnimplementedError(absl::StrFormat(
          "tensor %s is not used by this architecture; running without it "
          "would give wrong results",
          tensor.name));
    }
    return absl::OkStatus();
  }

 private:
  const Checkpoint& checkpoint_;
  std::set<std::string, std::less<>> taken_;
};

Status MapAttention(const std::string& prefix, const ModelConfig& config,
                    const LayerShape& shape, TensorTaker* taker,
                    WeightUnit* unit, LayerWeights* weights) {
  const int64_t hidden = config.hidden;
  const int64_t q_width = shape.heads * shape.key_dim;
  const int64_t k_width = shape.kv_heads * shape.key_dim;
  const int64_t v_width = shape.kv_heads * shape.value_dim;
  const int64_t out_width = shape.heads * shape.value_dim;
  const auto take = [&](const char* name, int64_t cols, int64_t rows) {
    return taker->Take(prefix + name, cols, rows, unit);
  };
  ASSIGN_OR_RETURN(weights->attn_norm, take("attn_norm.weight", hidden, 1));
  ASSIGN_OR_RETURN(weights->q, take("attn_q.weight", hidden, q_width));
  ASSIGN_OR_RETURN(weights->k, take("attn_k.weight", hidden, k_width));
  ASSIGN_OR_RETURN(weights->v, take("attn_v.weight", hidden, v_width));
  ASSIGN_OR_RETURN(weights->attn_output,
                   take("attn_output.weight", out_width, hidden));
  const auto bias = [&](const char* name, int64_t width) {
    return config.architecture->qkv_bias
               ? taker->Take(prefix + name, width, 1, unit)
               : taker->TakeIfThere(prefix + name, width, unit);
  };
  ASSIGN_OR_RETURN(weights->q_bias, bias("attn_q.bias", q_width));
  ASSIGN_OR_RETURN(weights->k_bias, bias("attn_k.bias", k_width));
  ASSIGN_OR_RETURN(weights->v_bias, bias("attn_v.bias", v_width));
  ASSIGN_OR_RETURN(
      weights->attn_output_bias,
      taker->TakeIfThere(prefix + "attn_output.bias", hidden, unit));
  return absl::OkStatus();
}

Status MapFfn(const std::string& prefix, const ModelConfig& config,
              const LayerShape& shape, TensorTaker* taker, WeightUnit* unit,
              LayerWeights* weights) {
  const int64_t hidden = config.hidden;
  const auto take = [&](const char* name, int64_t cols, int64_t rows) {
    return taker->Take(prefix + name, cols, rows, unit);
  };
  if (!config.architecture->parallel_residual) {
    ASSIGN_OR_RETURN(weights->ffn_norm, take("ffn_norm.weight", hidden, 1));
  }
  ASSIGN_OR_RETURN(weights->gate, take("ffn_gate.weight", hidden, shape.ffn));
  ASSIGN_OR_RETURN(weights->up, take("ffn_up.weight", hidden, shape.ffn));
  ASSIGN_OR_RETURN(weights->down, take("ffn_down.weight", shape.ffn, hidden));
  return absl::OkStatus();
}

// Cuts the head by rows into even units of at most `limit` bytes each.
void MapHead(const TensorInfo& tensor, uint64_t limit, WeightMap* map) {
  const int64_t rows = tensor.rows();
  const uint64_t row_bytes =
      RowBytes(tensor.type, static_cast<uint64_t>(tensor.cols()));
  const uint64_t pieces = (tensor.extent.length + limit - 1) / limit;
  const int64_t count =
      std::clamp<int64_t>(static_cast<int64_t>(pieces), 1, rows);
  const int64_t rows_each = (rows + count - 1) / count;
  for (int64_t begin = 0; begin < rows; begin += rows_each) {
    const int64_t piece_rows = std::min(rows_each, rows - begin);
    WeightUnit unit;
    unit.name = absl::StrFormat("output.rows.%d", begin);
    unit.parts.push_back(
        {{tensor.extent.file,
          tensor.extent.offset + static_cast<uint64_t>(begin) * row_bytes,
          static_cast<uint64_t>(piece_rows) * row_bytes},
         0});
    map->units.push_back(std::move(unit));
    map->roles.push_back({UnitKind::kHead,
                          0,
                          begin,
                          {0, tensor.type, piece_rows, tensor.cols()}});
  }
}

Status MapLayers(const ModelConfig& config, TensorTaker* taker,
                 WeightMap* map) {
  map->layers.resize(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    const std::string prefix = absl::StrFormat("blk.%d.", layer);
    WeightUnit attention, ffn;
    attention.name = prefix + "attention";
    ffn.name = prefix + "ffn";
    RETURN_IF_ERROR(MapAttention(prefix, config, config.layers[i], taker,
                                 &attention, &map->layers[i]));
    RETURN_IF_ERROR(
        MapFfn(prefix, config, config.layers[i], taker, &ffn, &map->layers[i]));
    map->units.push_back(std::move(attention));
    map->roles.push_back({UnitKind::kAttention, layer, 0, {}});
    map->units.push_back(std::move(ffn));
    map->roles.push_back({UnitKind::kFfn, layer, 0, {}});
  }
  return absl::OkStatus();
}

void LayOutUnits(const Checkpoint& checkpoint, WeightMap* map) {
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> alignments;
  for (const auto& file : checkpoint.files()) {
    sizes.push_back(file->size());
    alignments.push_back(file->window_alignment());
  }
  for (WeightUnit& unit : map->units)
    LayOutUnit(sizes, alignments, kMaxGapBytes, &unit);
}

}  // namespace

uint64_t WeightMap::weight_bytes() const {
  uint64_t bytes = 0;
  for (const WeightUnit& unit : units) bytes += unit.weight_bytes();
  return bytes;
}

StatusOr<WeightMap> MapWeights(const Checkpoint& checkpoint,
                               const ModelConfig& config) {
  WeightMap map;
  TensorTaker taker(checkpoint);
  RETURN_IF_ERROR(MapLayers(config, &taker, &map));
  uint64_t largest = 1;
  for (const WeightUnit& unit : map.units)
    largest = std::max(largest, unit.weight_bytes());

  WeightUnit final_norm;
  final_norm.name = "output_norm";
  final_norm.pinned = true;
  UnitRole norm_role{UnitKind::kFinalNorm, 0, 0, {}};
  ASSIGN_OR_RETURN(norm_role.weight, taker.Take("output_norm.weight",
                                                config.hidden, 1, &final_norm));
  map.units.push_back(std::move(final_norm));
  map.roles.push_back(norm_role);

  WeightUnit unused;  // shape checks only: these two are not streamed whole
  RETURN_IF_ERROR(
      taker.Take("token_embd.weight", config.hidden, config.vocab_rows, &unused)
          .status());
  const TensorInfo* embedding = checkpoint.Find("token_embd.weight");
  map.embedding = {embedding->extent, embedding->type, embedding->rows(),
                   embedding->cols()};
  const TensorInfo* head = checkpoint.Find("output.weight");
  map.tied = head == nullptr;
  if (map.tied) {
    head = embedding;
  } else {
    RETURN_IF_ERROR(
        taker.Take("output.weight", config.hidden, config.vocab_rows, &unused)
            .status());
  }
  MapHead(*head, largest, &map);
  if (!config.rope.frequency_divisors.empty())
    taker.MarkTaken("rope_freqs.weight");
  RETURN_IF_ERROR(taker.CheckAllTaken());
  LayOutUnits(checkpoint, &map);
  return map;
}

TensorView Resolve(const WeightRef& ref, const WeightUnit& unit,
                   const std::byte* buffer) {
  CHECK(ref.present());
  return {ref.type, buffer + unit.parts[static_cast<size_t>(ref.part)].offset,
          ref.rows, ref.cols};
}

}  // namespace coldstream
