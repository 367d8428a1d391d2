// Models split over several GGUF files.
//
// Convention (ggml's gguf-split): PREFIX-00001-of-00003.gguf, numbered from 1
// in the name; inside, split.no counts from 0, split.count is the number of
// parts and split.tensors.count the tensors of all of them. Only the first part
// need carry the model's metadata. A file whose split.count is absent, 0 or 1
// is a whole model. Source: failure case H15 and the reports it names.
#ifndef COLDSTREAM_IO_SPLIT_H_
#define COLDSTREAM_IO_SPLIT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/gguf.h"

namespace coldstream {

// The name of a part, without its folder.
struct SplitName {
  std::string prefix;
  int index = 0;  // from 0
  int count = 1;

  std::string ToString() const;
};

// nullopt if `file_name` is not named like a part.
std::optional<SplitName> ParseSplitName(std::string_view file_name);

// Where `part` stands among its siblings: nullopt for a whole model. Errors:
// InvalidArgument if name and metadata do not agree (a renamed part).
StatusOr<std::optional<SplitName>> SplitPlaceOf(const GgufFile& part);

// The paths of all parts, in order, of the model that the part at `path`,
// called `name`, belongs to: beside it or, where it is a link, beside what it
// links to. Errors: NotFound listing the missing names.
StatusOr<std::vector<std::string>> FindSplitParts(const std::string& path,
                                                  const SplitName& name);

// That `parts` are the parts of one model, in order and complete. Errors:
// InvalidArgument.
Status CheckSplitParts(const std::vector<GgufFile>& parts);

// The one model of a folder: its file, or one of its parts. Errors: NotFound if
// there is none, InvalidArgument listing them if there are several.
StatusOr<std::string> FindModelInFolder(const std::string& folder);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_SPLIT_H_
