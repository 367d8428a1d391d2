// Turns the bytes of tokens into text that may be shown: characters cut across
// tokens are held back, stop strings are found across token boundaries and
// never shown, not even partly.
#ifndef COLDSTREAM_RUNTIME_TEXT_STREAM_H_
#define COLDSTREAM_RUNTIME_TEXT_STREAM_H_

#include <string>
#include <string_view>
#include <vector>

namespace coldstream {

class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stop_strings = {});

  // Adds a token's bytes; returns the text that can be shown now. After a stop
  // string was found nothing more comes out.
  std::string Push(std::string_view bytes);
  // What was held back, at the end of a generation that met no stop string. An
  // incomplete UTF-8 tail comes out as U+FFFD.
  std::string Flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stop_strings_;
  std::string held_;
  bool stopped_ = false;
};

// `bytes` with every invalid UTF-8 sequence replaced by U+FFFD: for JSON.
std::string ReplaceInvalidUtf8(std::string_view bytes);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_TEXT_STREAM_H_
