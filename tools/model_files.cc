#include "tools/model_files.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

namespace fs = std::filesystem;

bool AllDigits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// What the parts of one split model have in common, or the name itself.
std::string SplitModelKey(const std::string& name) {
  // NAME-00001-of-00004.gguf
  constexpr std::string_view kPattern = "-00001-of-00004.gguf";
  if (name.size() <= kPattern.size()) return name;
  const std::string_view tail =
      std::string_view(name).substr(name.size() - kPattern.size());
  if (tail[0] != '-' || !AllDigits(tail.substr(1, 5)) ||
      tail.substr(6, 4) != "-of-" || !AllDigits(tail.substr(10, 5)))
    return name;
  return name.substr(0, name.size() - kPattern.size()) +
         std::string(tail.substr(6));
}

}  // namespace

StatusOr<std::vector<std::string>> ModelFiles(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    return absl::NotFoundError(absl::StrFormat(
        "%s: %s", path, error ? error.message() : "no such file"));
  if (!fs::is_directory(status)) return std::vector<std::string>{path};

  std::vector<std::string> names;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;  // a dangling link is listed, and fails when read
    if (entry->path().extension() == ".gguf" && !entry->is_directory(ignored))
      names.push_back(entry->path().filename().string());
  }
  if (error)
    return absl::NotFoundError(
        absl::StrFormat("%s: cannot list: %s", path, error.message()));
  std::ranges::sort(names);

  std::vector<std::string> files;
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (seen.insert(SplitModelKey(name)).second)
      files.push_back((fs::path(path) / name).string());
  if (files.empty())
    return absl::NotFoundError(
        absl::StrFormat("%s: no .gguf file in this folder", path));
  return files;
}

}  // namespace coldstream
