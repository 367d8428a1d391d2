#include "tools/batch_request.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "tools/batch_fields.h"
#include "tools/batch_messages.h"
#include "tools/batch_token_ids.h"
#include "tools/strict_json.h"

namespace coldstream {
namespace {

using Json = nlohmann::json;

constexpr BatchEndpoint kEndpoints[] = {BatchEndpoint::kCompletions,
                                        BatchEndpoint::kChatCompletions,
                                        BatchEndpoint::kEmbeddings};

// FNV-1a over the id, from a start that the job's seed moves.
uint64_t SeedOf(std::string_view custom_id, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325u ^ seed;
  for (const char c : custom_id)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// One text, or one list of ids: a string, a list with one string, or a list of
// numbers.
void ReadPrompt(BatchFields* fields, BatchRequest* request) {
  constexpr char name[] = "prompt";
  constexpr char kExpected[] =
      "a string or a list of token ids, one prompt a line";
  const Json* input = fields->Require(name, kExpected);
  if (input == nullptr) return;
  if (input->is_string()) {
    request->input = input->get<std::string>();
  } else if (input->is_array() && input->size() == 1 &&
             input->front().is_string()) {
    request->input = input->front().get<std::string>();
  } else if (input->is_array() && !input->empty() &&
             input->front().is_number()) {
    request->input = ReadBatchTokenIds(*input, name, fields);
  } else {
    fields->Fail("invalid_type", name, kExpected, *input);
  }
}

void ReadStops(BatchFields* fields, std::vector<std::string>* stops) {
  constexpr char kExpected[] = "a string or a list of 1 to 4, none empty";
  const Json* stop = fields->Find("stop");
  if (stop == nullptr) return;
  const Json list = stop->is_string() ? Json::array({*stop}) : *stop;
  bool good = list.is_array() && list.size() <= kMostStops;
  for (size_t i = 0; good && i < list.size(); ++i) {
    good = list[i].is_string() && list[i] != "";
    if (good) stops->push_back(list[i].get<std::string>());
  }
  if (!good) fields->Fail("invalid_value", "stop", kExpected, *stop);
}

void ReadSampling(std::string_view custom_id, uint64_t seed,
                  BatchFields* fields, GenerateRequest* generate) {
  SamplingOptions& sampling = generate->sampling;
  sampling.temperature = fields->Number("temperature", 0, 100).value_or(1);
  sampling.top_p = fields->Number("top_p", 0, 1).value_or(1);
  // -1 is another way to say all.
  sampling.top_k = std::max<int64_t>(
      0, fields->Integer("top_k", -1, kMostTokens).value_or(0));
  sampling.min_p = fields->Number("min_p", 0, 1).value_or(0);
  sampling.repeat_penalty =
      fields->Number("repetition_penalty", 1e-3, 1e3).value_or(1);
  const std::optional<int64_t> own =
      fields->Integer("seed", std::numeric_limits<int64_t>::min(),
                      std::numeric_limits<int64_t>::max());
  sampling.seed = own ? static_cast<uint64_t>(*own) : SeedOf(custom_id, seed);
  generate->ignore_end_of_generation =
      fields->Bool("ignore_eos").value_or(false);
  ReadStops(fields, &generate->stop);
}

// What asks for more than one answer, another form of it, or the impossible.
void RefuseUnsupported(BatchFields* fields) {
  fields->OnlyNeutral("n", {1});
  fields->OnlyNeutral("stream", {false});
  fields->OnlyNeutral("presence_penalty", {0});
  fields->OnlyNeutral("frequency_penalty", {0});
  fields->OnlyNeutral("logit_bias", {Json::object()});
}

void ReadCompletionOptions(BatchFields* fields, BatchRequest* request) {
  Request& options = request->request;
  ReadPrompt(fields, request);
  options.generate.max_tokens =
      fields->Integer("max_tokens", 0, kMostTokens).value_or(kCompletionTokens);
  if (const auto count = fields->Integer("logprobs", 0, kMostLogprobs))
    options.logprobs = static_cast<int>(*count);
  options.echo = fields->Bool("echo").value_or(false);
  fields->OnlyNeutral("best_of", {1});
  fields->OnlyNeutral("suffix", {""});
}

void ReadChatTokens(BatchFields* fields, GenerateRequest* generate) {
  const auto tokens = fields->Integer("max_completion_tokens", 0, kMostTokens);
  const auto old_name = fields->Integer("max_tokens", 0, kMostTokens);
  if (tokens && old_name && *tokens != *old_name) {
    fields->Fail("invalid_value", "max_tokens",
                 absl::StrFormat("%d as in max_completion_tokens", *tokens),
                 *old_name);
  }
  generate->max_tokens = tokens ? *tokens : old_name.value_or(-1);
}

void ReadChatOptions(BatchFields* fields, BatchRequest* request) {
  Request& options = request->request;
  const Json* messages = fields->Require("messages", "a list of messages");
  if (messages != nullptr)
    request->input = ReadBatchMessages(*messages, fields);
  ReadChatTokens(fields, &options.generate);
  const bool wanted = fields->Bool("logprobs").value_or(false);
  const auto best = fields->Integer("top_logprobs", 0, kMostLogprobs);
  if (best && !wanted) {
    fields->Fail("invalid_value", "top_logprobs", "nothing without logprobs",
                 *best);
  }
  if (wanted) options.logprobs = static_cast<int>(best.value_or(0));
  fields->OnlyNeutral("response_format", {{{"type", "text"}}});
  fields->OnlyNeutral("modalities", {Json::array({"text"})});
  fields->OnlyNeutral("tools", {Json::array()});
  fields->OnlyNeutral("tool_choice", {"none", "auto"});
}

std::optional<BatchError> ReadBody(const Json& body, uint64_t seed,
                                   std::string_view custom_id,
                                   BatchRequest* request) {
  BatchFields fields(body, "body");
  request->model = fields.String("model").value_or("");
  switch (request->endpoint) {
    case BatchEndpoint::kCompletions:
      ReadCompletionOptions(&fields, request);
      break;
    case BatchEndpoint::kChatCompletions:
      ReadChatOptions(&fields, request);
      break;
    case BatchEndpoint::kEmbeddings:
      ReadBatchEmbedding(&fields, &request->embedding);
      break;
  }
  if (request->endpoint != BatchEndpoint::kEmbeddings) {
    ReadSampling(custom_id, seed, &fields, &request->request.generate);
    RefuseUnsupported(&fields);
  }
  for (const char* name : {"user", "metadata", "store", "service_tier"})
    fields.Ignore(name);
  fields.RefuseOthers();
  return fields.error();
}

void ReadCustomId(BatchFields* fields, BatchLine* line) {
  constexpr char kExpected[] = "a string of 1 to 512 bytes";
  const Json* id = fields->Require("custom_id", kExpected);
  if (id == nullptr) return;
  const bool good =
      id->is_string() && *id != "" &&
      id->get_ref<const std::string&>().size() <= kLongestCustomId;
  if (good) {
    line->custom_id = id->get<std::string>();
  } else {
    fields->Fail("invalid_value", "custom_id", kExpected, *id);
  }
}

void ReadUrl(BatchFields* fields, BatchRequest* request) {
  std::string known;
  for (const BatchEndpoint endpoint : kEndpoints)
    known += (known.empty() ? "" : ", ") + std::string(BatchUrl(endpoint));
  const Json* url = fields->Require("url", known.c_str());
  if (url == nullptr) return;
  for (const BatchEndpoint endpoint : kEndpoints) {
    if (*url != BatchUrl(endpoint)) continue;
    request->endpoint = endpoint;
    return;
  }
  fields->Fail("invalid_url", "url", known, *url);
}

}  // namespace

const char* BatchUrl(BatchEndpoint endpoint) {
  switch (endpoint) {
    case BatchEndpoint::kCompletions:
      return "/v1/completions";
    case BatchEndpoint::kChatCompletions:
      return "/v1/chat/completions";
    case BatchEndpoint::kEmbeddings:
      return "/v1/embeddings";
  }
  return "";
}

BatchLine ParseBatchLine(std::string_view text, uint64_t seed) {
  BatchLine line;
  const StatusOr<Json> json = ParseStrictJson(text);
  if (!json.ok() || !json->is_object()) {
    const std::string what = json.ok()
                                 ? "got " + DescribeJson(*json)
                                 : "not JSON: " + MessageOf(json.status());
    line.error = {.code = "invalid_json_line",
                  .message = "expected a JSON object, " + what};
    return line;
  }
  BatchFields fields(*json, "");
  ReadCustomId(&fields, &line);
  const Json* method = fields.Require("method", "\"POST\"");
  if (method != nullptr && *method != "POST")
    fields.Fail("invalid_method", "method", "\"POST\"", *method);
  ReadUrl(&fields, &line.request);
  const Json* body = fields.Require("body", "an object");
  if (body != nullptr && !body->is_object())
    fields.Fail("invalid_type", "body", "an object", *body);
  fields.RefuseOthers();
  line.error = fields.error();
  if (!line.error)
    line.error = ReadBody(*body, seed, line.custom_id, &line.request);
  return line;
}

}  // namespace coldstream
