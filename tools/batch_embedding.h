// The body of a request to /v1/embeddings.
//
//   {"model": "m", "input": ["a text", "another"], "encoding_format": "base64"}
//
// input: a string, a list of strings, a list of token ids, or a list of such
// lists. Beyond OpenAI's options: pooling.
// Source: OpenAI API reference, "Embeddings".
#ifndef COLDSTREAM_TOOLS_BATCH_EMBEDDING_H_
#define COLDSTREAM_TOOLS_BATCH_EMBEDDING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/pooling.h"
#include "runtime/tokenizer.h"
#include "tools/batch_error.h"
#include "tools/batch_fields.h"

namespace coldstream {

inline constexpr size_t kMostEmbeddingInputs = 2048;  // as OpenAI has it

enum class EmbeddingFormat {
  kFloat,   // a list of numbers
  kBase64,  // of 32-bit floats, the lowest byte first
};

struct BatchEmbedding {
  std::vector<std::variant<std::string, std::vector<TokenId>>> inputs = {};
  EmbeddingFormat format = EmbeddingFormat::kFloat;
  std::optional<Pooling> pooling = {};     // unset: the job's, or the model's
  std::optional<int64_t> dimensions = {};  // that were asked for
};

void ReadBatchEmbedding(BatchFields* fields, BatchEmbedding* embedding);

// What is wrong with `dimensions` for a model whose vectors have `hidden`
// values: they are not cut.
std::optional<BatchError> CheckDimensions(const BatchEmbedding& embedding,
                                          int64_t hidden);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_EMBEDDING_H_
