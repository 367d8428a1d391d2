#include "runtime/jinja_text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace coldstream {
namespace {

constexpr size_t kLongestToken = 64;
constexpr size_t kLongestBetween = size_t{16} << 10;
constexpr std::array<std::string_view, 5> kOtherTokens = {
    "<<SYS>>", "<</SYS>>", "<start_of_turn>", "<end_of_turn>",
    "### Instruction"};
constexpr std::string_view kWideBar = "\xEF\xBD\x9C";  // U+FF5C

bool IsQuote(char c) { return c == '\'' || c == '"'; }

// Bytes of the token at the start of `text` that begins and ends like this and
// has in it neither quotes nor white space nor angle brackets; 0: none.
size_t BarToken(std::string_view text, std::string_view head,
                std::string_view tail) {
  if (!text.starts_with(head)) return 0;
  const size_t end = text.substr(0, kLongestToken).find(tail, head.size() + 1);
  if (end == std::string_view::npos) return 0;
  const std::string_view inner = text.substr(head.size(), end - head.size());
  if (inner.find_first_of("'\"<> \t\r\n{}") != std::string_view::npos) return 0;
  return end + tail.size();
}

// [INST], [/INST], [TOOL_CALLS]
size_t SquareToken(std::string_view text) {
  if (text.front() != '[') return 0;
  size_t end = text.size() > 1 && text[1] == '/' ? 2 : 1;
  const size_t begin = end;
  while (end < std::min(text.size(), kLongestToken) &&
         (std::isupper(static_cast<unsigned char>(text[end])) != 0 ||
          text[end] == '_'))
    ++end;
  if (end - begin < 2 || end == text.size() || text[end] != ']') return 0;
  return end + 1;
}

size_t TokenLength(std::string_view text) {
  if (const size_t n = BarToken(text, "<|", "|>")) return n;
  const std::string wide_head = std::string("<").append(kWideBar);
  const std::string wide_tail = std::string(kWideBar).append(">");
  if (const size_t n = BarToken(text, wide_head, wide_tail)) return n;
  if (const size_t n = SquareToken(text)) return n;
  for (const std::string_view token : kOtherTokens) {
    if (text.starts_with(token)) return token.size();
  }
  return 0;
}

std::string WithoutComments(std::string_view jinja) {
  std::string text;
  while (true) {
    const size_t begin = jinja.find("{#");
    text += jinja.substr(0, begin);
    if (begin == std::string_view::npos) return text;
    const size_t end = jinja.find("#}", begin + 2);
    if (end == std::string_view::npos) return text;
    jinja.remove_prefix(end + 2);
  }
}

}  // namespace

JinjaText::JinjaText(std::string_view jinja) {
  const std::string source = WithoutComments(jinja);
  text_.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\\' || i + 1 == source.size()) {
      text_.push_back(source[i]);
    } else if (source[++i] == 'n') {
      text_.push_back('\n');
    } else {
      text_.push_back('\\');  // taken away by Unescaped
      text_.push_back(source[i]);
    }
  }
}

bool JinjaText::HasAny(std::initializer_list<std::string_view> sought) const {
  return std::any_of(sought.begin(), sought.end(),
                     [this](std::string_view s) { return Has(s); });
}

std::vector<std::string> JinjaText::ControlTokens() const {
  std::vector<std::string> tokens;
  const std::string_view text = text_;
  for (size_t pos = 0; pos < text.size();) {
    const size_t length = TokenLength(text.substr(pos));
    if (length == 0) {
      ++pos;
      continue;
    }
    const std::string token(text.substr(pos, length));
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end())
      tokens.push_back(token);
    pos += length;
  }
  return tokens;
}

size_t JinjaText::FixedEnd(size_t open, size_t begin, size_t limit) const {
  const bool in_literal = open > 0 && IsQuote(text_[open - 1]);
  for (size_t end = begin; end < limit; ++end) {
    const char c = text_[end];
    if (in_literal && c == '\\') {
      ++end;
    } else if (in_literal ? c == text_[open - 1]
                          : text_.compare(end, 2, "{{") == 0 ||
                                text_.compare(end, 2, "{%") == 0) {
      return end;
    }
  }
  return limit;
}

std::string JinjaText::Unescaped(size_t begin, size_t end) const {
  std::string out;
  for (size_t i = begin; i < end; ++i) {
    if (text_[i] == '\\' && i + 1 < end) ++i;
    out.push_back(text_[i]);
  }
  return out;
}

std::vector<std::string> JinjaText::Between(std::string_view open,
                                            std::string_view close) const {
  std::vector<std::string> found;
  for (size_t at = text_.find(open); at != std::string::npos;
       at = text_.find(open, at + 1)) {
    const size_t begin = at + open.size();
    const size_t length =
        std::string_view(text_).substr(begin, kLongestBetween).find(close);
    if (length == 0 || length == std::string_view::npos) continue;
    if (FixedEnd(at, begin, begin + length) < begin + length) continue;
    std::string text = Unescaped(begin, begin + length);
    if (std::find(found.begin(), found.end(), text) == found.end())
      found.push_back(std::move(text));
  }
  return found;
}

std::string JinjaText::AfterLast(std::string_view open) const {
  const size_t at = open.empty() ? std::string::npos : text_.rfind(open);
  if (at == std::string::npos) return "";
  const size_t begin = at + open.size();
  return Unescaped(begin, FixedEnd(at, begin, text_.size()));
}

}  // namespace coldstream
