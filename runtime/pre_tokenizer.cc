#include "runtime/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/tokenizer.h"
#include "runtime/utf8.h"

namespace coldstream {
namespace {

// The words of GPT-2: contractions, and letters, digits or signs with at most
// one space in front; spaces before a word leave it their last one.
constexpr std::string_view kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d"
    "| ?\\p{L}+| ?\\p{N}+| ?[^\\p{WSpace}\\p{L}\\p{N}]+"
    "|\\p{WSpace}+(?!\\P{WSpace})|\\p{WSpace}+";

constexpr std::string_view kLlama3 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\p{WSpace}\\p{L}\\p{N}]+[\\r\\n]*|\\p{WSpace}*[\\r\\n]+"
    "|\\p{WSpace}+(?!\\P{WSpace})|\\p{WSpace}+";

// As kLlama3 with single digits.
constexpr std::string_view kQwen2 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
    "| ?[^\\p{WSpace}\\p{L}\\p{N}]+[\\r\\n]*|\\p{WSpace}*[\\r\\n]+"
    "|\\p{WSpace}+(?!\\P{WSpace})|\\p{WSpace}+";

constexpr std::string_view kDigit = "\\p{N}";

constexpr std::array<PreTokenizerRule, 6> kRules = {
    {{.name = "llama-bpe",
      .stages = {kLlama3},
      .ignore_merges = true,
      .add_bos = true},
     {.name = "qwen2", .stages = {kQwen2}, .normalize_nfc = true},
     {.name = "command-r", .stages = {kDigit, kGpt2}, .normalize_nfc = true},
     {.name = "smollm", .stages = {kDigit, kGpt2}},
     {.name = "gpt-2", .stages = {kGpt2}},
     {.name = "default",
      .stages = {"[\\p{P}$+<=>^~|]+", kGpt2, "\\p{N}+", "[0-9][0-9][0-9]"}}}};

// Names that files of models with the same rule carry.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9>
    kAliases = {{{"llama3", "llama-bpe"},
                 {"llama-v3", "llama-bpe"},
                 {"falcon3", "llama-bpe"},
                 {"pixtral", "llama-bpe"},
                 {"starcoder", "smollm"},
                 {"refact", "smollm"},
                 {"codeshell", "smollm"},
                 {"gpt2", "gpt-2"},
                 {"phi-2", "gpt-2"}}};

const PreTokenizerRule* FindRule(std::string_view name) {
  for (const auto& [alias, canonical] : kAliases) {
    if (alias == name) name = canonical;
  }
  for (const PreTokenizerRule& rule : kRules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

// Machine code keeps its choice points here; \p{L}+ over a megabyte needs none,
// but no rule may overflow the caller's stack whatever the text.
constexpr size_t kJitStackStart = size_t{32} << 10;
constexpr size_t kJitStackMost = size_t{16} << 20;

}  // namespace

std::string KnownPreTokenizers() {
  std::string names;
  for (const PreTokenizerRule& rule : kRules) {
    if (!names.empty()) names += ", ";
    names += rule.name;
  }
  return names;
}

class PreTokenizer::Stage {
 public:
  explicit Stage(pcre2_code* code) : code_(code) {}
  const pcre2_code* code() const { return code_.get(); }
  uint64_t memory_bytes() const {
    size_t bytes = 0;
    size_t machine = 0;
    pcre2_pattern_info(code_.get(), PCRE2_INFO_SIZE, &bytes);
    pcre2_pattern_info(code_.get(), PCRE2_INFO_JITSIZE, &machine);
    return bytes + machine;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
};

class PreTokenizer::Matcher {
 public:
  explicit Matcher(const std::vector<Stage>& stages)
      : context_(pcre2_match_context_create(nullptr)),
        jit_stack_(
            pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr)) {
    pcre2_jit_stack_assign(context_, nullptr, jit_stack_);
    pcre2_set_match_limit(context_, UINT32_MAX);
    for (const Stage& stage : stages) {
      data_.push_back(
          pcre2_match_data_create_from_pattern(stage.code(), nullptr));
    }
  }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
  ~Matcher() {
    for (pcre2_match_data* data : data_) pcre2_match_data_free(data);
    pcre2_jit_stack_free(jit_stack_);
    pcre2_match_context_free(context_);
  }

  // The first non-empty match of `stage` in `piece` from `pos` on. Without
  // one, or if the engine gives up: the empty range at the end.
  std::pair<size_t, size_t> Next(const Stage& stage, size_t index,
                                 std::string_view piece, size_t pos) {
    pcre2_match_data* data = data_[index];
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    const auto match = [&](uint32_t options) {
      return pcre2_match(stage.code(), subject, piece.size(), pos,
                         PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | options, data,
                         context_);
    };
    int found = match(0);
    // Machine code that ran out of its stack: the interpreter uses the heap.
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) found = match(PCRE2_NO_JIT);
    if (found < 0) return {piece.size(), piece.size()};
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
    return {ends[0], ends[1]};
  }

 private:
  pcre2_match_context* context_;
  pcre2_jit_stack* jit_stack_;
  std::vector<pcre2_match_data*> data_;  // by stage
};

PreTokenizer::PreTokenizer(const PreTokenizerRule* rule) : rule_(rule) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

StatusOr<PreTokenizer> PreTokenizer::Create(std::string_view name) {
  const PreTokenizerRule* rule = FindRule(name);
  if (rule == nullptr) {
    const std::string got =
        name.empty() ? "is missing" : absl::StrFormat("is \"%s\"", name);
    return absl::InvalidArgumentError(absl::StrFormat(
        "tokenizer.ggml.pre (the pre-tokenizer) %s; known: %s. Choose one with "
        "--pre NAME if you know which the model was trained with",
        got, KnownPreTokenizers()));
  }
  PreTokenizer pre(rule);
  for (const std::string_view stage : rule->stages) {
    if (stage.empty()) break;
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(stage.data()), stage.size(),
                      PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    if (code == nullptr) {
      return absl::InternalError(absl::StrFormat(
          "pre-tokenizer %s: PCRE2 error %d at offset %d of its expression",
          rule->name, error, offset));
    }
    // Where machine code is not to be had the interpreter serves: no error.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    pre.stages_.emplace_back(code);
  }
  return pre;
}

PreTokenizer::Scratch::Scratch(const PreTokenizer& pre)
    : matcher_(std::make_unique<Matcher>(pre.stages_)) {}
PreTokenizer::Scratch::Scratch(Scratch&&) noexcept = default;
PreTokenizer::Scratch::~Scratch() = default;

void PreTokenizer::Split(std::string_view text, Scratch* scratch,
                         absl::FunctionRef<void(std::string_view)> use) const {
  Matcher* matcher = scratch->matcher_.get();
  while (!text.empty()) {
    const size_t valid = ValidUtf8Prefix(text);
    if (valid > 0) SplitStage(0, text.substr(0, valid), matcher, use);
    text.remove_prefix(valid);
    size_t invalid = 0;
    while (invalid < text.size() && !DecodeUtf8(text, invalid).valid) {
      ++invalid;
    }
    if (invalid > 0) use(text.substr(0, invalid));
    text.remove_prefix(invalid);
  }
}

void PreTokenizer::SplitStage(
    size_t stage, std::string_view piece, Matcher* matcher,
    absl::FunctionRef<void(std::string_view)> use) const {
  if (stage == stages_.size()) {
    use(piece);
    return;
  }
  size_t pos = 0;
  while (pos < piece.size()) {
    const auto [begin, end] = matcher->Next(stages_[stage], stage, piece, pos);
    if (begin > pos) {
      SplitStage(stage + 1, piece.substr(pos, begin - pos), matcher, use);
    }
    if (end > begin) {
      SplitStage(stage + 1, piece.substr(begin, end - begin), matcher, use);
    }
    pos = end;
  }
}

uint64_t PreTokenizer::memory_bytes() const {
  uint64_t bytes = stages_.capacity() * sizeof(Stage);
  for (const Stage& stage : stages_) bytes += stage.memory_bytes();
  return bytes;
}

}  // namespace coldstream
