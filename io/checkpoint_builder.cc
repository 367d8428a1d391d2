#include "io/checkpoint_builder.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "io/printable.h"

namespace coldstream {
namespace {

// Keys that are about a file, not about the model.
bool IsPerFile(std::string_view key) {
  return key == "split.no" || key == "general.alignment";
}

}  // namespace

Status CheckpointBuilder::AddMetadata(const GgufFile& part) {
  for (const auto& [key, value] : part.metadata.values()) {
    const MetadataValue* known = checkpoint_.metadata_.Find(key);
    if (known == nullptr) {
      checkpoint_.metadata_.Insert(key, value);
    } else if (!IsPerFile(key) && *known != value) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: part of another model than %s: metadata key %s is \"%s\", "
          "expected \"%s\"",
          part.file->path(), checkpoint_.files_[0]->path(), Printable(key, 100),
          FormatMetadataValue(value, 60), FormatMetadataValue(*known, 60)));
    }
  }
  return absl::OkStatus();
}

Status CheckpointBuilder::Add(GgufFile part) {
  const int index = static_cast<int>(checkpoint_.files_.size());
  if (index == 0) {
    checkpoint_.format_ = absl::StrFormat("GGUF v%d", part.version);
    checkpoint_.metadata_ = std::move(part.metadata);
  } else {
    RETURN_IF_ERROR(AddMetadata(part));
  }
  for (TensorInfo& tensor : part.tensors) {
    const auto [at, added] = checkpoint_.by_name_.try_emplace(
        tensor.name, checkpoint_.tensors_.size());
    if (!added) {
      const int other = checkpoint_.tensors_[at->second].extent.file;
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: tensor %s is also in %s", part.file->path(),
          Printable(tensor.name, 100),
          checkpoint_.files_[static_cast<size_t>(other)]->path()));
    }
    tensor.extent.file = index;
    checkpoint_.tensors_.push_back(std::move(tensor));
  }
  for (std::string& warning : part.warnings)
    checkpoint_.warnings_.push_back(std::move(warning));
  if (!part.file->direct_refusal().empty()) {
    checkpoint_.warnings_.push_back(absl::StrFormat(
        "%s: reading through the page cache, direct I/O refused by %s",
        part.file->path(), part.file->direct_refusal()));
  }
  checkpoint_.files_.push_back(std::move(part.file));
  return absl::OkStatus();
}

Checkpoint CheckpointBuilder::Build() && { return std::move(checkpoint_); }

}  // namespace coldstream
