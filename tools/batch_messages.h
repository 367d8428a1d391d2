// The messages of a chat request, from JSON.
#ifndef COLDSTREAM_TOOLS_BATCH_MESSAGES_H_
#define COLDSTREAM_TOOLS_BATCH_MESSAGES_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/chat_template.h"
#include "tools/batch_fields.h"

namespace coldstream {

// A message's content is a string, or a list of parts {"type": "text", "text":
// ...}, which are put together with a line end between them. Other parts
// (pictures, sound), roles (tool) and members (tool_calls, name) are errors in
// `fields`, with the message's index: nothing is left out of a conversation.
std::vector<ChatMessage> ReadBatchMessages(const nlohmann::json& messages,
                                           BatchFields* fields);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_MESSAGES_H_
