// The lines of a batch's output, in OpenAI's format.
//
//   {"id": "batch_req_7", "custom_id": "r1", "response": {"status_code": 200,
//    "request_id": "req_7", "body": {...}}, "error": null}
//
// 7 is the line of the input. A line without a result has the error twice, as a
// response's body (what OpenAI does with a refused request) and as `error`
// (what it does with one that never ran), so that either way to look for errors
// finds it.
// Every line is one line: it ends with the only line end in it. It depends on
// the request and its result alone; there is no time in it (`created` is 0), so
// that runs can be compared byte by byte. Bytes that are not UTF-8 come out as
// U+FFFD.
// Source: OpenAI API reference, "The request output object".
#ifndef COLDSTREAM_TOOLS_BATCH_RESULT_H_
#define COLDSTREAM_TOOLS_BATCH_RESULT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/request.h"
#include "runtime/tokenizer.h"
#include "tools/batch_error.h"
#include "tools/batch_request.h"
#include "tools/embedding_gather.h"

namespace coldstream {

// What all lines of a job share.
struct BatchModel {
  const Tokenizer* tokenizer = nullptr;  // for scores and echo
  std::string name;                      // where a request names no model
};

// Which line of the input a line of the output is about.
struct BatchKey {
  int64_t line = 0;       // from 1
  std::string custom_id;  // may be empty: null then
};

// "batch_req_7", and the 7 of it; -1 for any other text.
std::string BatchResultId(int64_t line);
int64_t LineOfBatchResultId(std::string_view id);

std::string BatchErrorLine(const BatchKey& key, const BatchError& error);

// Of a completion or a chat; `request` with its prompt. A result whose status
// is an error gives an error line.
std::string BatchAnswerLine(const BatchKey& key, const BatchRequest& request,
                            const RequestResult& result,
                            const BatchModel& model);

// Of the inputs of one line. What failed gives an error line.
std::string BatchEmbeddingLine(const BatchKey& key, const BatchRequest& request,
                               const GatheredEmbeddings& all,
                               const BatchModel& model);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_RESULT_H_
