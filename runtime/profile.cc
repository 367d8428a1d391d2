#include "runtime/profile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "io/atomic_file.h"
#include "runtime/profile_json.h"

namespace coldstream {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
constexpr std::chrono::milliseconds kLockPause{20};
constexpr int kLockAttempts = 50;

// A descriptor, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string ErrorText(int error) { return std::strerror(error); }

// The variable if it is set and an absolute path.
std::string FolderFrom(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

std::string PresentDate() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  char text[32] = {};
  if (gmtime_r(&now, &utc) == nullptr ||
      std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
    return "";
  return text;
}

// The file's text. Errors: NotFound; Unavailable (not to be read, not a file,
// too large).
StatusOr<std::string> ReadText(const std::string& path) {
  // O_NONBLOCK: a pipe of that name must not hang us.
  const Descriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 && (errno == ENOENT || errno == ENOTDIR))
    return absl::NotFoundError("it is not there");
  struct stat info = {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0)
    return absl::UnavailableError(ErrorText(errno));
  if (!S_ISREG(info.st_mode)) return absl::UnavailableError("it is no file");
  std::string text;
  char part[4096];
  while (text.size() <= kMaxBytes) {
    const ssize_t got = read(file.get(), part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::UnavailableError(ErrorText(errno));
    if (got == 0) return text;
    text.append(part, static_cast<size_t>(got));
  }
  return absl::UnavailableError(absl::StrFormat(
      "it is larger than the %d bytes of a profile", kMaxBytes));
}

// Begins as ours does, or is what a power cut leaves.
bool LooksLikeOurs(std::string_view text) {
  return text.find_first_not_of(std::string_view("\0 \n", 3)) ==
             std::string_view::npos ||
         text.starts_with("{\n  \"format\": \"coldstream");
}

struct Contents {
  ProfileData data;
  std::string problem;      // why data is empty, or less than the file has
  bool replaceable = true;  // Save may put another file in its place
  bool damaged = false;
};

Contents ReadContents(const ProfilePlace& place) {
  Contents contents;
  const StatusOr<std::string> text = ReadText(place.path);
  if (absl::IsNotFound(text.status())) return contents;
  if (!text.ok()) {
    contents.problem = MessageOf(text.status());
    contents.replaceable = false;
    return contents;
  }
  StatusOr<ParsedProfile> parsed = ParseProfile(*text);
  if (!parsed.ok()) {
    contents.problem = MessageOf(parsed.status());
    contents.damaged = absl::IsDataLoss(parsed.status());
    contents.replaceable =
        contents.damaged && (place.ours || LooksLikeOurs(*text));
    return contents;
  }
  if (parsed->refused > 0) {
    contents.problem = absl::StrFormat("%d of its entries: %s", parsed->refused,
                                       parsed->refusal);
  }
  contents.data = std::move(parsed->data);
  return contents;
}

// Held while the file is read again and replaced. A folder that cannot be
// locked (some network file systems) is no reason not to write: the file is
// whole all the same, and the last writer wins.
Status LockFolder(int folder) {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (flock(folder, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    if (errno != EWOULDBLOCK && errno != EINTR) return absl::OkStatus();
    std::this_thread::sleep_for(kLockPause);
  }
  return absl::UnavailableError("another process keeps its folder locked");
}

// Makes the folder and those above it, for this user alone.
Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error))
    return absl::OkStatus();
  RETURN_IF_ERROR(MakeFolder(folder.parent_path()));
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST)
    return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("making ", folder.string(), ": ", ErrorText(errno)));
}

Status Replace(const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(const auto file, AtomicFile::Create(path, text.size()));
  RETURN_IF_ERROR(
      file->Append(std::as_bytes(std::span(text.data(), text.size()))));
  return file->Commit();
}

template <typename Map>
const typename Map::mapped_type* Find(const Map& map,
                                      const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

template <typename Map>
void Override(const Map& with, Map* map) {
  for (const auto& [key, value] : with) (*map)[key] = value;
}

uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

}  // namespace

ProfilePlace ProfilePlace::FromEnvironment() {
  const char* named = std::getenv("COLDSTREAM_PROFILE");
  if (named != nullptr && std::string_view(named) == "off") return {};
  if (named != nullptr && named[0] != '\0') return {named, "", false};
  std::string cache = FolderFrom("XDG_CACHE_HOME");
  if (cache.empty()) {
    const std::string home = FolderFrom("HOME");
    if (home.empty()) {
      return {"", "neither XDG_CACHE_HOME nor HOME names a folder for it",
              false};
    }
    cache = home + "/.cache";
  }
  return {cache + "/coldstream/profile.json", "", true};
}

Profile Profile::Load(const ProfilePlace& place) {
  Profile profile(place);
  if (place.path.empty()) return profile;
  Contents contents = ReadContents(place);
  profile.data_ = std::move(contents.data);
  if (!contents.problem.empty()) {
    profile.warning_ = absl::StrFormat("%sthe profile %s is ignored: %s",
                                       profile.data_.empty() ? "" : "part of ",
                                       place.path, contents.problem);
  }
  return profile;
}

const DiskRecord* Profile::FindDisk(const std::string& disk_key) const {
  return Find(data_.disks, disk_key);
}

const ComputeRecord* Profile::FindCompute(
    const std::string& compute_key) const {
  return Find(data_.compute, compute_key);
}

const TunedSettings* Profile::FindTuned(const TunedKey& key) const {
  const TunedSettings* nearest = nullptr;
  uint64_t least = key.ram_bytes / 16;
  for (const auto& [other, settings] : data_.tuned) {
    if (other.disk != key.disk || other.model != key.model ||
        other.threads != key.threads || other.device != key.device ||
        other.cpu_layers != key.cpu_layers ||
        Distance(other.vram_bytes, key.vram_bytes) > key.vram_bytes / 16)
      continue;
    const uint64_t distance = Distance(other.ram_bytes, key.ram_bytes);
    if (distance > least) continue;
    least = distance;
    nearest = &settings;
  }
  return nearest;
}

void Profile::PutDisk(const std::string& disk_key, DiskRecord record) {
  if (record.date.empty()) record.date = PresentDate();
  data_.disks[disk_key] = record;
  put_.disks[disk_key] = std::move(record);
}

void Profile::PutCompute(const std::string& compute_key, ComputeRecord record) {
  if (record.date.empty()) record.date = PresentDate();
  data_.compute[compute_key] = record;
  put_.compute[compute_key] = std::move(record);
}

void Profile::PutTuned(const TunedKey& key, TunedSettings settings) {
  if (settings.date.empty()) settings.date = PresentDate();
  data_.tuned[key] = settings;
  put_.tuned[key] = std::move(settings);
}

ProfileSave Profile::Save() {
  if (put_.empty()) return {true, ""};
  if (place_.path.empty()) {
    return {false, place_.absent.empty()
                       ? ""
                       : "no profile is kept: " + place_.absent};
  }
  std::string note;
  const Status status = Write(&note);
  if (status.ok()) return {true, note};
  return {false, absl::StrFormat("the profile %s is not written: %s",
                                 place_.path, MessageOf(status))};
}

Status Profile::Write(std::string* note) {
  std::filesystem::path folder =
      std::filesystem::path(place_.path).parent_path();
  if (folder.empty()) folder = ".";
  RETURN_IF_ERROR(MakeFolder(folder));
  const Descriptor lock(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) return absl::UnavailableError(ErrorText(errno));
  RETURN_IF_ERROR(LockFolder(lock.get()));

  Contents contents = ReadContents(place_);
  if (!contents.replaceable) {
    return absl::FailedPreconditionError(
        absl::StrCat(contents.problem, "; it is left as it is"));
  }
  Override(put_.disks, &contents.data.disks);
  Override(put_.compute, &contents.data.compute);
  Override(put_.tuned, &contents.data.tuned);
  RETURN_IF_ERROR(Replace(place_.path, FormatProfile(contents.data)));
  if (contents.damaged) {
    *note = absl::StrFormat("the damaged profile %s was replaced", place_.path);
  }
  data_ = std::move(contents.data);
  put_ = {};
  return absl::OkStatus();
}

}  // namespace coldstream
