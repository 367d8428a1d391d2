// Text from a model larger than the memory given to it.
#include <cstdio>
#include <memory>
#include <string>

#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "runtime/tokenizer.h"

namespace {

coldstream::Status Generate(const std::string& path, uint64_t ram_bytes) {
  ASSIGN_OR_RETURN(const auto model, coldstream::Model::Open({.path = path}));
  ASSIGN_OR_RETURN(const coldstream::Tokenizer* tokenizer, model->tokenizer());
  ASSIGN_OR_RETURN(const auto engine,
                   coldstream::Engine::Create(model, {.ram_bytes = ram_bytes}));

  coldstream::GenerateRequest request;
  if (tokenizer->add_bos()) request.prompt.push_back(*tokenizer->bos());
  for (const coldstream::TokenId id : tokenizer->Encode(
           "The capital of France is", coldstream::SpecialTokens::kAsText))
    request.prompt.push_back(id);
  request.max_tokens = 16;
  request.sampling.temperature = 0;

  const std::unique_ptr<coldstream::Session> session = engine->NewSession();
  ASSIGN_OR_RETURN(const coldstream::GenerateResult result,
                   session->Generate(request, [](std::string_view text) {
                     std::fwrite(text.data(), 1, text.size(), stdout);
                     std::fflush(stdout);
                   }));
  std::printf("\n%zu tokens, %llu bytes read from disk\n", result.tokens.size(),
              static_cast<unsigned long long>(engine->stats().bytes_from_disk));
  return coldstream::Status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const coldstream::Status status = Generate(argv[1], std::stoull(argv[2]));
  if (!status.ok())
    std::fprintf(stderr, "%s\n", coldstream::MessageOf(status).c_str());
  return status.ok() ? 0 : 1;
}
