#include "io/split.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "io/printable.h"

namespace coldstream {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".gguf";
constexpr size_t kMostNamesListed = 8;

// "a, b, c", or "a, b, ... (20 in all)".
std::string ListNames(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kMostNamesListed); ++i)
    shown.push_back(Printable(names[i], 255));
  std::string list = absl::StrJoin(shown, ", ");
  if (names.size() > shown.size())
    list += absl::StrFormat(", ... (%d in all)", names.size());
  return list;
}

// Five digits as a number of at least 1, or 0.
int FiveDigits(std::string_view text) {
  int number = 0;
  if (text.size() != 5) return 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + (c - '0');
  }
  return number;
}

Status InFile(const GgufFile& part, const Status& status) {
  return Status(status.code(), absl::StrFormat("%s: %s", part.file->path(),
                                               MessageOf(status)));
}

StatusOr<int64_t> IntOf(const GgufFile& part, std::string_view key,
                        int64_t fallback) {
  StatusOr<int64_t> value = part.metadata.GetIntOr(key, fallback);
  if (!value.ok()) return InFile(part, value.status());
  return value;
}

}  // namespace

std::string SplitName::ToString() const {
  return absl::StrFormat("%s-%05d-of-%05d%s", prefix, index + 1, count,
                         std::string(kSuffix));
}

std::optional<SplitName> ParseSplitName(std::string_view file_name) {
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kTail = 1 + 5 + kOf.size() + 5;  // "-00001-of-00003"
  if (!file_name.ends_with(kSuffix)) return std::nullopt;
  file_name.remove_suffix(kSuffix.size());
  if (file_name.size() < kTail) return std::nullopt;
  const std::string_view tail = file_name.substr(file_name.size() - kTail);
  const int number = FiveDigits(tail.substr(1, 5));
  const int count = FiveDigits(tail.substr(6 + kOf.size()));
  if (tail[0] != '-' || tail.substr(6, kOf.size()) != kOf || number < 1 ||
      number > count) {
    return std::nullopt;
  }
  file_name.remove_suffix(kTail);
  return SplitName{std::string(file_name), number - 1, count};
}

StatusOr<std::optional<SplitName>> SplitPlaceOf(const GgufFile& part) {
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(part.file->path() + ": " + what);
  };
  const std::optional<SplitName> name =
      ParseSplitName(fs::path(part.file->path()).filename().string());
  ASSIGN_OR_RETURN(const int64_t count, IntOf(part, "split.count", 1));
  if (count == 0 || count == 1) {
    if (!name.has_value() || name->count == 1)
      return std::optional<SplitName>();
    return invalid(
        absl::StrFormat("is named like part %d of %d, but has no metadata key "
                        "split.count above "
                        "1; rename it if it is a whole model",
                        name->index + 1, name->count));
  }
  ASSIGN_OR_RETURN(const int64_t no, IntOf(part, "split.no", -1));
  if (no < 0 || no >= count) {
    return invalid(absl::StrFormat(
        "metadata key split.no is %d, expected 0..%d (split.count %d)", no,
        count - 1, count));
  }
  if (!name.has_value()) {
    return invalid(absl::StrFormat(
        "is part %d of %d of a split model, so its name must end in "
        "-%05d-of-%05d.gguf for the others to be found; give it its name back",
        no + 1, count, no + 1, count));
  }
  if (name->index != no || name->count != count) {
    return invalid(absl::StrFormat(
        "is named part %d of %d, but its metadata (split.no, split.count) says "
        "part %d of %d; give it its name back",
        name->index + 1, name->count, no + 1, count));
  }
  return name;
}

StatusOr<std::vector<std::string>> FindSplitParts(const std::string& path,
                                                  const SplitName& name) {
  std::vector<fs::path> folders = {fs::path(path).parent_path()};
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  if (!error && target.filename() == name.ToString())
    folders.push_back(target.parent_path());

  std::vector<std::string> parts;
  std::vector<std::string> missing;
  SplitName sibling = name;
  for (sibling.index = 0; sibling.index < name.count; ++sibling.index) {
    if (sibling.index == name.index) {
      parts.push_back(path);
      continue;
    }
    const auto found = std::find_if(
        folders.begin(), folders.end(), [&](const fs::path& folder) {
          return fs::exists(folder / sibling.ToString(), error);
        });
    if (found == folders.end()) {
      missing.push_back(sibling.ToString());
    } else {
      parts.push_back((*found / sibling.ToString()).string());
    }
  }
  if (missing.empty()) return parts;
  return absl::NotFoundError(
      absl::StrFormat("%s: %d of %d parts of this model are missing: %s", path,
                      missing.size(), name.count, ListNames(missing)));
}

Status CheckSplitParts(const std::vector<GgufFile>& parts) {
  int64_t tensors = 0;
  for (const GgufFile& part : parts)
    tensors += static_cast<int64_t>(part.tensors.size());
  ASSIGN_OR_RETURN(const int64_t expected,
                   IntOf(parts[0], "split.tensors.count", tensors));
  for (size_t i = 0; i < parts.size(); ++i) {
    const GgufFile& part = parts[i];
    ASSIGN_OR_RETURN(const std::optional<SplitName> place, SplitPlaceOf(part));
    if (!place.has_value() || std::cmp_not_equal(place->index, i) ||
        std::cmp_not_equal(place->count, parts.size())) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: is not part %d of %d, as metadata keys split.no and split.count "
          "should say; a file of another model?",
          part.file->path(), i + 1, parts.size()));
    }
    ASSIGN_OR_RETURN(const int64_t total,
                     IntOf(part, "split.tensors.count", expected));
    if (total != expected) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: metadata key split.tensors.count is %d, but %d in %s; a part of "
          "another model?",
          part.file->path(), total, expected, parts[0].file->path()));
    }
  }
  if (tensors == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: the %d parts hold %d tensors, metadata key split.tensors.count says "
      "%d; parts of different models?",
      parts[0].file->path(), parts.size(), tensors, expected));
}

StatusOr<std::string> FindModelInFolder(const std::string& folder) {
  std::error_code error;
  // The name of each model, and the path that opens it. Parts come in order of
  // name, so that the first one found stays.
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (std::string_view(name).ends_with(kSuffix)) names.push_back(name);
  }
  if (error)
    return absl::UnavailableError(folder + ": listing it: " + error.message());
  std::sort(names.begin(), names.end());
  std::map<std::pair<std::string, int>, std::string> models;
  for (const std::string& name : names) {
    const std::optional<SplitName> part = ParseSplitName(name);
    if (part.has_value()) {
      models.try_emplace({part->prefix, part->count}, name);
    } else {
      models.try_emplace({name, 0}, name);
    }
  }
  if (models.empty()) {
    return absl::NotFoundError(folder + ": no .gguf file in this folder");
  }
  if (models.size() > 1) {
    std::vector<std::string> found;
    found.reserve(models.size());
    for (const auto& [key, name] : models) found.push_back(name);
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: holds %d models, name one: %s", folder,
                        models.size(), ListNames(found)));
  }
  return (fs::path(folder) / models.begin()->second).string();
}

}  // namespace coldstream
