// The prompt of run and eval: from -p, -f or standard input, as token ids.
#ifndef COLDSTREAM_TOOLS_PROMPT_H_
#define COLDSTREAM_TOOLS_PROMPT_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "runtime/tokenizer.h"

namespace coldstream {

struct PromptFlags {
  std::string text;      // -p
  std::string file;      // -f; "-" is standard input
  bool special = false;  // --special: control tokens in the text are parsed
  bool has_file = false;
};

// Adds -p, -f and --special; at most one of -p and -f.
void AddPromptFlags(CLI::App& app, PromptFlags* flags);

// Ids of the prompt, with exactly one BOS in front where the model adds one.
// Errors: NotFound, naming the file; InvalidArgument for an empty prompt of a
// model that adds no BOS.
StatusOr<std::vector<TokenId>> EncodePrompt(const PromptFlags& flags,
                                            const Tokenizer& tokenizer);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_PROMPT_H_
