// Options of llama.cpp that users know by names like -ngl: one dash and several
// letters, which here are the letters of several options.
#ifndef COLDSTREAM_TOOLS_LLAMA_NAMES_H_
#define COLDSTREAM_TOOLS_LLAMA_NAMES_H_

#include <string>
#include <vector>

namespace coldstream {

// `arguments` with such names in place of which ours stand: "-np" and
// "--parallel". Only whole arguments before a "--" are names.
std::vector<std::string> WithLongNames(std::vector<std::string> arguments);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_LLAMA_NAMES_H_
