// A working byte-level BPE vocabulary of any size, for models whose weights are
// random: every text encodes, and what the model says reads like words.
//
// Ids: 0..255 the bytes (in the order GPT-2 gave them), then one token a merge
// in the order of the merges, last the control tokens. Every merge joins two
// earlier tokens into a new one. The same size gives the same vocabulary.
// Source: byte-level BPE and its byte alphabet: Radford et al. 2019 (GPT-2).
#ifndef COLDSTREAM_TOOLS_SYNTH_TOKENIZER_H_
#define COLDSTREAM_TOOLS_SYNTH_TOKENIZER_H_

#include <cstdint>
#include <string>

#include "io/metadata.h"

namespace coldstream {

// 256 bytes, beginning and end of text.
inline constexpr int64_t kMinSynthVocab = 258;
inline constexpr int64_t kMaxSynthVocab = int64_t{1} << 19;

struct SynthVocabulary {
  StringArray tokens;
  IntArray token_types;  // 1 normal, 3 control, as GGUF has them
  StringArray merges;    // "left right"
  int64_t bos = 0;
  int64_t eos = 0;
};

// `vocab_size` in [kMinSynthVocab, kMaxSynthVocab].
SynthVocabulary MakeSynthVocabulary(int64_t vocab_size);

// The printable character that stands for `byte` in token texts, as UTF-8.
std::string ByteToVocabularyText(uint8_t byte);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SYNTH_TOKENIZER_H_
