// Hidden states of the golden models, as an engine gives them, and the logits
// that the head in the file makes of them in double: an engine's own head has
// no part in it.
#ifndef COLDSTREAM_TESTS_SUPPORT_GOLDEN_HIDDEN_H_
#define COLDSTREAM_TESTS_SUPPORT_GOLDEN_HIDDEN_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/ops.h"
#include "tests/support/golden_models.h"

namespace coldstream {

// The head's weights as the values that they stand for: [rows][hidden].
inline std::vector<std::vector<float>> HeadOf(const Model& model) {
  const Checkpoint& checkpoint = model.checkpoint();
  const TensorInfo* head = checkpoint.Find("output.weight");
  if (head == nullptr) head = checkpoint.Find("token_embd.weight");
  std::vector<std::byte> bytes(head->extent.length);
  const auto file = static_cast<size_t>(head->extent.file);
  EXPECT_TRUE(
      checkpoint.files()[file]->ReadExactly(head->extent.offset, bytes).ok());
  const Ops& ops = **OpsFor(Isa::kScalar);
  std::vector<std::vector<float>> rows(static_cast<size_t>(head->rows()));
  const size_t row_bytes = bytes.size() / rows.size();
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r].resize(static_cast<size_t>(head->cols()));
    ops.MatmulFor(head->type)
        .dequantize(bytes.data() + r * row_bytes, head->cols(), rows[r].data());
  }
  return rows;
}

// That of the last token of every beginning of the ids: [ids][hidden]. Sizes
// in `options` are filled in.
inline StatusOr<std::vector<std::vector<float>>> HiddenStates(
    const Golden& golden, EngineOptions options,
    uint64_t unit_bytes = kDefaultUnitBytes) {
  ASSIGN_OR_RETURN(auto model, Model::Open({.path = golden.path(),
                                            .unit_bytes = unit_bytes}));
  options.context = std::ssize(golden.ids);
  options.max_sequences = 4;
  options.batch_tokens = 24;
  ASSIGN_OR_RETURN(auto engine, Engine::Create(model, options));
  std::vector<std::vector<float>> hidden;
  for (size_t n = 1; n <= golden.ids.size(); ++n) {
    const auto beginning = std::span(golden.ids).first(n);
    Request request;
    request.generate.prompt.assign(beginning.begin(), beginning.end());
    request.embed = EmbedOptions{.pooling = Pooling::kLast,
                                 .length = VectorLength::kAsItIs};
    ASSIGN_OR_RETURN(auto future, engine->Submit(std::move(request)));
    RequestResult result = future.get();
    RETURN_IF_ERROR(result.status);
    hidden.push_back(std::move(result.embedding));
  }
  return hidden;
}

// [states][rows of the head]
inline std::vector<float> LogitsOfHidden(
    const Golden& golden, const std::vector<std::vector<float>>& states) {
  const auto model = *Model::Open({.path = golden.path()});
  const auto scale = static_cast<double>(model->config().logit_scale);
  const auto head = HeadOf(*model);
  std::vector<float> logits;
  for (const std::vector<float>& hidden : states) {
    for (const std::vector<float>& row : head) {
      EXPECT_EQ(hidden.size(), row.size());
      double sum = 0;
      for (size_t i = 0; i < row.size(); ++i)
        sum += static_cast<double>(row[i]) * static_cast<double>(hidden[i]);
      logits.push_back(static_cast<float>(sum * scale));
    }
  }
  return logits;
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_GOLDEN_HIDDEN_H_
