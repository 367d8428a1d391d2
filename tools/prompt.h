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
  bool has_text = false;
  bool has_file = false;
};

// Adds -p, -f and --special; at most one of -p and -f.
void AddPromptFlags(CLI::App& app, PromptFlags* flags);

// The text of the flags. Errors: NotFound, naming the file.
StatusOr<std::string> ReadPrompt(const PromptFlags& flags);

// Ids of `text` with exactly one BOS in front where the model adds one. Errors:
// InvalidArgument for an empty text of a model that adds none.
StatusOr<std::vector<TokenId>> EncodePrompt(const Tokenizer& tokenizer,
                                            const std::string& text,
                                            SpecialTokens special);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_PROMPT_H_
