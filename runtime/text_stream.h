// Turns the bytes of tokens into text that may be shown: characters cut across
// tokens are held back, stop strings are found across token boundaries and
// never shown, not even partly.
//
//   TextStream stream({"\nUser:"});
//   std::cout << stream.Push(tokenizer.Decode(id));   // for each token
//   std::cout << stream.Flush();                      // at the end
//
// Invariant: all that Push and Flush return, put together, is valid UTF-8 and
// depends only on the bytes, not on how they were cut into tokens: it is
// ReplaceInvalidUtf8 of the bytes before the stop string that ends first (of
// several that end there, the longest).
// Thread-safety: none; use from one thread at a time.
#ifndef COLDSTREAM_RUNTIME_TEXT_STREAM_H_
#define COLDSTREAM_RUNTIME_TEXT_STREAM_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace coldstream {

class TextStream {
 public:
  // Empty stop strings are ignored.
  explicit TextStream(std::vector<std::string> stop_strings = {});

  // Adds a token's bytes; returns the text that can be shown now. After a stop
  // string was found nothing more comes out.
  std::string Push(std::string_view bytes);
  // What was held back, at the end of a generation that met no stop string. An
  // incomplete UTF-8 tail comes out as U+FFFD.
  std::string Flush();
  bool stopped() const { return stopped_; }

 private:
  // Where the first-ending stop string in held_ begins, or npos.
  size_t FindStop() const;
  // How many bytes of held_ can neither belong to a stop string nor to a
  // character that is still to be completed.
  size_t ShowableBytes() const;

  std::vector<std::string> stop_strings_;
  std::string held_;
  bool stopped_ = false;
};

// `bytes` with every invalid UTF-8 sequence replaced by U+FFFD: for JSON. One
// U+FFFD stands for a maximal subpart of a character, as browsers do.
// Source: The Unicode Standard 15.0, section 3.9, table 3-7 and "U+FFFD
// Substitution of Maximal Subparts".
std::string ReplaceInvalidUtf8(std::string_view bytes);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_TEXT_STREAM_H_
