#include "io/checkpoint.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "io/checkpoint_builder.h"
#include "io/gguf.h"
#include "io/printable.h"
#include "io/split.h"

namespace coldstream {

int64_t TensorInfo::rows() const {
  uint64_t rows = 1;
  for (size_t i = 1; i < shape.size(); ++i) rows *= shape[i];
  return static_cast<int64_t>(rows);
}

StatusOr<Checkpoint> Checkpoint::Open(const std::string& path,
                                      const CheckpointOptions& options) {
  const auto parse = [&options](const std::string& name) -> StatusOr<GgufFile> {
    ASSIGN_OR_RETURN(std::shared_ptr<File> file,
                     File::Open(name, options.direct, options.direct_probe));
    return ParseGguf(std::move(file));
  };
  std::string first_path = path;
  std::error_code no_folder;
  if (std::filesystem::is_directory(path, no_folder)) {
    ASSIGN_OR_RETURN(first_path, FindModelInFolder(path));
  }
  ASSIGN_OR_RETURN(GgufFile given, parse(first_path));
  ASSIGN_OR_RETURN(const std::optional<SplitName> place, SplitPlaceOf(given));

  std::vector<GgufFile> parts;
  if (!place.has_value()) {
    parts.push_back(std::move(given));
  } else {
    ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                     FindSplitParts(first_path, *place));
    const auto given_at = paths.begin() + place->index;
    for (auto it = paths.begin(); it != given_at; ++it) {
      ASSIGN_OR_RETURN(GgufFile part, parse(*it));
      parts.push_back(std::move(part));
    }
    parts.push_back(std::move(given));
    for (auto it = given_at + 1; it != paths.end(); ++it) {
      ASSIGN_OR_RETURN(GgufFile part, parse(*it));
      parts.push_back(std::move(part));
    }
    RETURN_IF_ERROR(CheckSplitParts(parts));
  }
  CheckpointBuilder builder;
  for (GgufFile& part : parts) RETURN_IF_ERROR(builder.Add(std::move(part)));
  return std::move(builder).Build();
}

const TensorInfo* Checkpoint::Find(std::string_view name) const {
  const auto found = by_name_.find(absl::string_view(name.data(), name.size()));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

StatusOr<const TensorInfo*> Checkpoint::Get(std::string_view name) const {
  if (const TensorInfo* tensor = Find(name)) return tensor;
  return absl::NotFoundError(absl::StrFormat(
      "%s: tensor %s is missing", files_.empty() ? "" : files_[0]->path(),
      Printable(name, 100)));
}

uint64_t Checkpoint::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const TensorInfo& tensor : tensors_) bytes += tensor.extent.length;
  return bytes;
}

Status Checkpoint::CheckUnchanged() const {
  for (const std::shared_ptr<File>& file : files_)
    RETURN_IF_ERROR(file->CheckUnchanged());
  return absl::OkStatus();
}

}  // namespace coldstream
