// The words a synthetic vocabulary is built from: common English words, then
// common affixes, separated by spaces, lower case, none twice.
#ifndef COLDSTREAM_TOOLS_SYNTH_WORDS_H_
#define COLDSTREAM_TOOLS_SYNTH_WORDS_H_

namespace coldstream {

extern const char* const kSynthWords;

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SYNTH_WORDS_H_
