#include "tools/prompt.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/str_format.h"
#include "runtime/prompt_tokens.h"

namespace coldstream {
namespace {

StatusOr<std::string> ReadPrompt(const PromptFlags& flags) {
  if (!flags.has_file) return flags.text;
  if (flags.file == "-")
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream in(flags.file, std::ios::binary);
  std::string text;
  if (in) text.assign(std::istreambuf_iterator<char>(in), {});
  if (!in && !in.eof()) {
    return absl::NotFoundError(absl::StrFormat(
        "%s: cannot read the prompt: %s", flags.file, std::strerror(errno)));
  }
  return text;
}

}  // namespace

void AddPromptFlags(CLI::App& app, PromptFlags* flags) {
  CLI::Option* text = app.add_option("-p,--prompt", flags->text, "The prompt");
  app.add_option("-f,--file", flags->file,
                 "File to read the prompt from; - is standard input")
      ->each([flags](const std::string&) { flags->has_file = true; })
      ->excludes(text);
  app.add_flag("--special", flags->special,
               "Control tokens written out in the prompt (<|im_start|>) are "
               "control tokens, not text");
}

StatusOr<std::vector<TokenId>> EncodePrompt(const PromptFlags& flags,
                                            const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::string text, ReadPrompt(flags));
  std::vector<TokenId> ids = PromptTokens(
      tokenizer, text,
      flags.special ? SpecialTokens::kParse : SpecialTokens::kAsText);
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        "the prompt is empty and this model adds no BOS token: give -p or -f");
  }
  return ids;
}

}  // namespace coldstream
