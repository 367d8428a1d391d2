// Looks at the text of a Jinja template without running it.
//
//   JinjaText text("{{ '<|im_start|>system\\nBe kind.<|im_end|>' }}");
//   text.Between("<|im_start|>system\n", "<|im_end|>")   // {"Be kind."}
//   text.ControlTokens()             // {"<|im_start|>", "<|im_end|>"}
//
// Comments are gone, and \n in a literal is a line end. Text is fixed if it is
// one literal, or lies outside of literals without a {{ or {% in it.
// Thread-safety: const methods may be called from several threads.
// Source: the Jinja template designer documentation, "Synopsis", "Literals".
#ifndef COLDSTREAM_RUNTIME_JINJA_TEXT_H_
#define COLDSTREAM_RUNTIME_JINJA_TEXT_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace coldstream {

class JinjaText {
 public:
  explicit JinjaText(std::string_view jinja);

  bool Has(std::string_view sought) const {
    return text_.find(sought) != std::string::npos;
  }
  bool HasAny(std::initializer_list<std::string_view> sought) const;

  // What looks like a control token (<|x|>, [X], <<X>>, <start_of_turn>), each
  // once, in the order of their first use.
  std::vector<std::string> ControlTokens() const;

  // The different fixed texts, of at most 16 KiB, that stand between an `open`
  // and the `close` that follows it; those that are put together at run time
  // are left out.
  std::vector<std::string> Between(std::string_view open,
                                   std::string_view close) const;
  // The fixed text that follows the last `open`, up to the end of its literal.
  std::string AfterLast(std::string_view open) const;

 private:
  // Where fixed text that begins at `begin` ends, at most `limit`; the literal
  // it is in, if any, is the one that begins with text_[open].
  size_t FixedEnd(size_t open, size_t begin, size_t limit) const;
  std::string Unescaped(size_t begin, size_t end) const;

  std::string text_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_JINJA_TEXT_H_
