// The models in a folder: each GGUF file, the parts of a split model as one.
#ifndef COLDSTREAM_TOOLS_MODEL_FILES_H_
#define COLDSTREAM_TOOLS_MODEL_FILES_H_

#include <string>
#include <vector>

#include "base/status.h"

namespace coldstream {

// `path` itself if it is not a folder. Otherwise, sorted, its *.gguf files; of
// a split model ("NAME-00001-of-00004.gguf") only the first part there is.
// Errors: NotFound where there is nothing of the kind or no such path.
StatusOr<std::vector<std::string>> ModelFiles(const std::string& path);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_MODEL_FILES_H_
