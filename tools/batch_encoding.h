// The input of a batch's request as token ids.
#ifndef COLDSTREAM_TOOLS_BATCH_ENCODING_H_
#define COLDSTREAM_TOOLS_BATCH_ENCODING_H_

#include <optional>
#include <vector>

#include "base/status.h"
#include "runtime/chat_template.h"
#include "runtime/tokenizer.h"
#include "tools/batch_request.h"

namespace coldstream {

// Fills in the request's prompt: a text behind exactly one BOS where the model
// adds one, control tokens in it being text; ids as they are; messages through
// `chat`, whose stop strings join the request's. Errors: InvalidArgument (ids
// outside the vocabulary, nothing to compute, what ChatTemplate::Render
// refuses), or `chat`'s own if it is needed.
Status EncodeBatchInput(const Tokenizer& tokenizer,
                        const StatusOr<ChatTemplate>& chat,
                        BatchRequest* request);

// Requests for the vectors of a line's inputs, each text behind the BOS and
// before the EOS that the model adds. `pooling`: where the line has none.
// Errors: InvalidArgument (ids outside the vocabulary, nothing to compute),
// naming the input.
StatusOr<std::vector<Request>> EncodeBatchEmbedding(
    const Tokenizer& tokenizer, std::optional<Pooling> pooling,
    const BatchEmbedding& embedding);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_ENCODING_H_
