// Which family a Jinja chat template is of, and what of it is its own.
//
// A template is of a family if it has all of the family's markers and no
// control token that the family does not know. From its text are also taken:
// the system message it puts in by default, what it begins an answer with
// (<think>), whether it trims, writes BOS, and drops the thoughts of earlier
// answers; for Mistral the spaces around [INST]. The program in the template is
// not run: what it does for tools and pictures is left aside.
// Errors: InvalidArgument, naming the control tokens that fit no family or the
// texts that contradict one another; a template over 1 MiB.
#ifndef COLDSTREAM_RUNTIME_CHAT_FORMAT_RECOGNITION_H_
#define COLDSTREAM_RUNTIME_CHAT_FORMAT_RECOGNITION_H_

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "runtime/chat_format.h"

namespace coldstream {

inline constexpr size_t kLargestChatTemplate = size_t{1} << 20;  // bytes

StatusOr<ChatFormat> RecogniseChatFormat(std::string_view jinja);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_CHAT_FORMAT_RECOGNITION_H_
