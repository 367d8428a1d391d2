#include "tools/batch_input.h"

#include <algorithm>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "io/printable.h"

namespace coldstream {
namespace {

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
}

// Of prompt and answer; text is not tokenized for it.
int64_t PositionsOf(const BatchRequest& request, int64_t line_bytes,
                    int64_t context) {
  const auto* ids = std::get_if<std::vector<TokenId>>(&request.input);
  const int64_t prompt =
      ids ? std::ssize(*ids) : line_bytes / BatchCensus::kBytesOfToken;
  int64_t answer = request.request.generate.max_tokens;
  if (answer < 0) answer = context;
  return std::min(prompt, context) + std::min(answer, context);
}

}  // namespace

StatusOr<std::unique_ptr<BatchInput>> BatchInput::Open(
    const BatchInputOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> reader,
                   LineReader::Open(options.path, options.lines));
  return std::unique_ptr<BatchInput>(
      new BatchInput(options, std::move(reader)));
}

StatusOr<std::optional<BatchInput::Item>> BatchInput::Next() {
  LineReader::Line line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader_->Next(&line));
    if (!more) return std::optional<Item>();
    if (IsBlank(line.text) && !line.cut()) continue;
    BatchLine request = Parse(line);
    if (!options_.shard.Has(line.number)) continue;
    return std::optional<Item>(
        Item{.line = line.number, .request = std::move(request)});
  }
}

BatchLine BatchInput::Parse(const LineReader::Line& line) {
  if (line.cut()) {
    BatchLine too_long;
    too_long.error = {.code = "line_too_long",
                      .message = absl::StrFormat(
                          "expected a line of at most %d bytes, got %d",
                          options_.lines.most_bytes, line.bytes)};
    return too_long;
  }
  BatchLine request = ParseBatchLine(line.text, options_.seed);
  if (request.custom_id.empty()) return request;
  if (!ids_.insert(FingerprintOf(request.custom_id)).second) {
    request.error = {
        .code = "duplicate_custom_id",
        .message = absl::StrFormat(
            "custom_id: expected one that no line before has, got \"%s\" again",
            Printable(request.custom_id, 80)),
        .param = "custom_id"};
  }
  return request;
}

StatusOr<BatchCensus> TakeBatchCensus(const BatchInputOptions& options) {
  if (options.path == "-") {
    return absl::InvalidArgumentError(
        "standard input can be read only once: expected a file");
  }
  ASSIGN_OR_RETURN(const auto reader,
                   LineReader::Open(options.path, options.lines));
  BatchCensus census;
  Fingerprint print;
  int64_t all = 0;
  int64_t requests = 0;
  int64_t positions = 0;
  LineReader::Line line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next(&line));
    if (!more) break;
    print.Add(line.text);
    print.Add(absl::StrFormat("\n%d\n", line.bytes));
    if (IsBlank(line.text) && !line.cut()) continue;
    ++all;
    if (!options.shard.Has(line.number)) continue;
    ++census.lines;
    if (options.context == 0 || line.cut()) continue;
    const BatchLine request = ParseBatchLine(line.text, options.seed);
    if (request.error) continue;
    ++requests;
    positions += std::min(
        PositionsOf(request.request, std::ssize(line.text), options.context),
        options.context);
  }
  if (requests > 0)
    census.positions = std::max<int64_t>(positions / requests, 1);
  census.fingerprint = absl::StrFormat("%d lines, %d bytes, %s", all,
                                       reader->position(), print.Hex());
  return census;
}

}  // namespace coldstream
