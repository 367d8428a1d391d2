// Vectors as the entries of an embedding response's `data`.
//
//   {"object":"embedding","index":0,"embedding":[0.1,-2.0]},{...}
//
// A number has the fewest digits that read back as the same float, so the two
// formats say the same bits.
#ifndef COLDSTREAM_TOOLS_EMBEDDINGS_TEXT_H_
#define COLDSTREAM_TOOLS_EMBEDDINGS_TEXT_H_

#include <span>
#include <string>
#include <vector>

#include "tools/batch_embedding.h"

namespace coldstream {

// Values are finite.
std::string EmbeddingsText(std::span<const std::vector<float>> vectors,
                           EmbeddingFormat format);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_EMBEDDINGS_TEXT_H_
