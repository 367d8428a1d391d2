#include "tools/batch_embedding.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "tools/batch_token_ids.h"

namespace coldstream {
namespace {

using Json = nlohmann::json;

void ReadInputs(BatchFields* fields, BatchEmbedding* embedding) {
  constexpr char kExpected[] =
      "a string, a list of strings, a list of token ids or a list of such "
      "lists";
  const Json* input = fields->Require("input", kExpected);
  if (input == nullptr) return;
  const bool one =
      input->is_string() ||
      (input->is_array() && !input->empty() && input->front().is_number());
  if (!one && (!input->is_array() || input->empty() ||
               input->size() > kMostEmbeddingInputs)) {
    fields->Fail("invalid_value", "input",
                 absl::StrFormat("%s (of 1 to %d texts)", kExpected,
                                 kMostEmbeddingInputs),
                 *input);
    return;
  }
  const size_t count = one ? 1 : input->size();
  for (size_t i = 0; i < count; ++i) {
    const Json& text = one ? *input : (*input)[i];
    const std::string name = one ? "input" : absl::StrFormat("input[%d]", i);
    if (text.is_string()) {
      embedding->inputs.emplace_back(text.get<std::string>());
    } else if (text.is_array() && !text.empty()) {
      embedding->inputs.emplace_back(ReadBatchTokenIds(text, name, fields));
    } else {
      return fields->Fail("invalid_type", name,
                          "a string or a list of token ids", text);
    }
  }
}

void ReadFormat(BatchFields* fields, BatchEmbedding* embedding) {
  const Json* format = fields->Find("encoding_format");
  if (format == nullptr || *format == "float") return;
  if (*format == "base64") {
    embedding->format = EmbeddingFormat::kBase64;
  } else {
    fields->Fail("invalid_value", "encoding_format", "\"float\" or \"base64\"",
                 *format);
  }
}

void ReadPooling(BatchFields* fields, BatchEmbedding* embedding) {
  const Json* name = fields->Find("pooling");
  if (name == nullptr) return;
  const StatusOr<Pooling> pooling =
      ParsePooling(name->is_string() ? name->get<std::string>() : "");
  if (pooling.ok()) {
    embedding->pooling = *pooling;
  } else {
    fields->Fail("invalid_value", "pooling", "mean, last or cls", *name);
  }
}

}  // namespace

void ReadBatchEmbedding(BatchFields* fields, BatchEmbedding* embedding) {
  ReadInputs(fields, embedding);
  ReadFormat(fields, embedding);
  ReadPooling(fields, embedding);
  embedding->dimensions = fields->Integer("dimensions", 1, kMostTokens);
}

std::optional<BatchError> CheckDimensions(const BatchEmbedding& embedding,
                                          int64_t hidden) {
  if (embedding.dimensions.value_or(hidden) == hidden) return std::nullopt;
  return BatchError{
      .code = "unsupported_value",
      .message = absl::StrFormat(
          "body.dimensions: expected %d, as many as the model has, got %d",
          hidden, *embedding.dimensions),
      .param = "body.dimensions"};
}

}  // namespace coldstream
