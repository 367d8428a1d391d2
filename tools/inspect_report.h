// What `coldstream inspect` says of one model, for people and as JSON.
#ifndef COLDSTREAM_TOOLS_INSPECT_REPORT_H_
#define COLDSTREAM_TOOLS_INSPECT_REPORT_H_

#include <string>

#include "io/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tools/model_summary.h"

namespace coldstream {

enum class TensorList { kLeaveOut, kShow };
enum class ArrayLength { kShortened, kWhole };

// The sizes alone, for people: layers (runs of layers with equal sizes share
// one line), embedding, head, totals per type.
std::string SummaryText(const ModelSummary& summary);
nlohmann::json SummaryJson(const ModelSummary& summary);

// File, metadata and sizes for people, on request every tensor.
std::string InspectText(const Checkpoint& checkpoint, TensorList tensors);

// Everything the text has and the tensor list. A shortened array is
// {"count": n, "first": [...]}.
nlohmann::json InspectJson(const Checkpoint& checkpoint, ArrayLength arrays);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_INSPECT_REPORT_H_
