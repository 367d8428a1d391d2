// One flow graph: reads a CSV file, asks the model about every row, writes the
// answers. One sweep of the weights serves all rows that are under way.
//
//   csv_pipeline MODEL RAM_BYTES [ROWS_UNDER_WAY] < questions.csv > answers.csv
#include <oneapi/tbb/flow_graph.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

#include "runtime/engine.h"
#include "runtime/generate_node.h"
#include "runtime/model.h"
#include "runtime/prompt_tokens.h"

namespace {

namespace flow = oneapi::tbb::flow;

struct Row {
  std::string id;
  std::string text;
};
using Generate = coldstream::GenerateNode<Row>;

// A field of a CSV line, quoted or not; *at goes to the next one.
std::string Field(const std::string& line, size_t* at) {
  std::string field;
  bool quoted = *at < line.size() && line[*at] == '"';
  for (*at += quoted ? 1 : 0; *at < line.size(); ++*at) {
    if (quoted && line[*at] == '"') {
      if (*at + 1 < line.size() && line[*at + 1] == '"') {
        ++*at;  // a quote, written twice
      } else {
        quoted = false;
        continue;
      }
    } else if (!quoted && line[*at] == ',') {
      break;
    }
    field += line[*at];
  }
  ++*at;
  return field;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

coldstream::Status Run(const std::string& path, uint64_t ram_bytes,
                       int64_t under_way) {
  ASSIGN_OR_RETURN(const auto model, coldstream::Model::Open({.path = path}));
  ASSIGN_OR_RETURN(const coldstream::Tokenizer* tokenizer, model->tokenizer());
  coldstream::EngineOptions options;
  options.ram_bytes = ram_bytes;
  options.context = 512;
  options.max_sequences = 16;
  options.queue_length = under_way;
  ASSIGN_OR_RETURN(const auto engine,
                   coldstream::Engine::Create(model, options));

  flow::graph graph;
  // Reads no further than the engine has room for.
  flow::input_node<Generate::Input> read(
      graph, [&](oneapi::tbb::flow_control& control) -> Generate::Input {
        std::string line;
        if (!std::getline(std::cin, line)) {
          control.stop();
          return {};
        }
        size_t at = 0;
        Row row;
        row.id = Field(line, &at);
        row.text = Field(line, &at);
        coldstream::Request request;
        request.generate.prompt = coldstream::PromptTokens(
            *tokenizer, "Question: " + row.text + "\nAnswer:",
            coldstream::SpecialTokens::kAsText);
        request.generate.max_tokens = 8;
        request.generate.sampling.temperature = 0;
        return {std::move(row), std::move(request)};
      });
  Generate generate(graph, engine.get());
  flow::function_node<Generate::Output, flow::continue_msg, flow::rejecting>
      write(graph, flow::serial, [](const Generate::Output& output) {
        const auto& [row, result] = output;
        const std::string answer = result.status.ok()
                                       ? result.generated.text
                                       : coldstream::MessageOf(result.status);
        std::printf("%s,%s\n", Quoted(row.id).c_str(), Quoted(answer).c_str());
        std::fflush(stdout);  // whoever reads may go on with it
        return flow::continue_msg();
      });
  flow::make_edge(read, generate.input());
  flow::make_edge(generate.output(), write);
  read.activate();
  graph.wait_for_all();
  return coldstream::Status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const coldstream::Status status =
      Run(argv[1], std::stoull(argv[2]), argc == 4 ? std::stoll(argv[3]) : 32);
  if (!status.ok())
    std::fprintf(stderr, "%s\n", coldstream::MessageOf(status).c_str());
  return status.ok() ? 0 : 1;
}
