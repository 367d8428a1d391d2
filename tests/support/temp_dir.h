// A fresh folder that is removed, with all that is in it, when its owner ends.
//
//   TempDir dir;
//   dir.Write("proc/meminfo", "MemAvailable: 1 kB\n");
//   ReadIt(dir.Path("proc/meminfo"));
#ifndef COLDSTREAM_TESTS_SUPPORT_TEMP_DIR_H_
#define COLDSTREAM_TESTS_SUPPORT_TEMP_DIR_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/check.h"

namespace coldstream {

class TempDir {
 public:
  // Below $TMPDIR (or /tmp), named coldstream-XXXXXX.
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "coldstream-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(std::string_view relative) const {
    return path_ + "/" + std::string(relative);
  }

  // Writes a file, with the folders it needs; returns its path.
  std::string Write(std::string_view relative,
                    std::string_view contents) const {
    const std::string path = Path(relative);
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path());
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    CHECK(file.good());
    return path;
  }

 private:
  std::string path_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_TEMP_DIR_H_
