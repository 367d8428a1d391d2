#include "io/uring_backend.h"

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace coldstream {
namespace {

constexpr uint64_t kMaxPieceBytes = uint64_t{1} << 30;
constexpr uint64_t kWakeTag = ~uint64_t{0};

// Results are reaped by the thread that submits, when it waits, so no
// interrupt of it is wanted: 6.1 has all three flags, 5.19 the last.
constexpr uint32_t kBestFlags = IORING_SETUP_SINGLE_ISSUER |
                                IORING_SETUP_DEFER_TASKRUN |
                                IORING_SETUP_COOP_TASKRUN;
constexpr uint32_t kFewerFlags[] = {
    kBestFlags, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
    IORING_SETUP_COOP_TASKRUN, 0};

std::string MemlockLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return absl::StrFormat("%d bytes", limit.rlim_cur);
}

bool DisabledBySysctl() {
  std::ifstream file("/proc/sys/kernel/io_uring_disabled");
  int value = 0;
  return (file >> value) && value != 0;
}

Status Refused(const char* step, int error) {
  std::string cause;
  if (error == EPERM || error == EACCES) {
    cause = DisabledBySysctl() ? "; sysctl kernel.io_uring_disabled is set"
                               : "; a seccomp profile, as containers have it?";
  } else if (error == ENOSYS || error == EINVAL) {
    cause = "; kernel too old, or a seccomp profile?";
  } else if (error == ENOMEM) {
    cause = absl::StrFormat("; memlock limit %s", MemlockLimit());
  }
  return absl::UnavailableError(absl::StrFormat(
      "io_uring refused (%s: %s%s)", step, std::strerror(error), cause));
}

class UringBackend final : public ReadBackend {
 public:
  UringBackend(std::vector<std::shared_ptr<File>> files, int depth,
               uint32_t first_flags)
      : files_(std::move(files)), depth_(depth), first_flags_(first_flags) {}

  ~UringBackend() override {
    // The poll that may still be in the ring refers to no memory of ours.
    if (ring_made_) io_uring_queue_exit(&ring_);
    if (wake_fd_ >= 0) close(wake_fd_);
  }

  Status Start() override;
  int capacity() const override { return depth_; }
  void Push(const RawRead& read) override;
  Status Wait(std::vector<RawResult>* results) override;
  void Wake() override;
  StatusOr<uint64_t> RegisterBuffers(
      std::span<const std::span<std::byte>> buffers) override;
  const char* name() const override { return "uring"; }

 private:
  Status MakeRing();
  void RegisterFiles();
  io_uring_sqe* NextSqe();
  void ArmWake();
  // Submits all and waits for one result. Returns whether the caller should
  // look at the results: false asks for another call.
  StatusOr<bool> Enter();
  // Appends what is at hand; returns whether a wake-up was among it.
  bool Reap(std::vector<RawResult>* results);
  const RegisteredPiece* PieceOf(const RawRead& read) const;

  const std::vector<std::shared_ptr<File>> files_;
  const int depth_;
  const uint32_t first_flags_;
  io_uring ring_{};
  bool ring_made_ = false;
  bool files_registered_ = false;
  bool wake_armed_ = false;
  int wake_fd_ = -1;
  std::vector<RegisteredPiece> pieces_;  // by address; index = buffer index
};

Status UringBackend::MakeRing() {
  uint32_t flags = first_flags_;
  const unsigned entries = static_cast<unsigned>(depth_) + 1;
  int error = -io_uring_queue_init(entries, &ring_, flags);
  for (uint32_t fewer : kFewerFlags) {
    if (error != EINVAL) break;
    if ((flags & fewer) == flags) continue;
    flags &= fewer;
    error = -io_uring_queue_init(entries, &ring_, flags);
  }
  if (error != 0) return Refused("setup", error);
  ring_made_ = true;
  return absl::OkStatus();
}

Status UringBackend::Start() {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) {
    return absl::UnavailableError(
        absl::StrFormat("no eventfd for io_uring: %s", std::strerror(errno)));
  }
  RETURN_IF_ERROR(MakeRing());
  RegisterFiles();
  // A round trip, because a profile may allow setup and refuse enter.
  ArmWake();
  io_uring_sqe* sqe = NextSqe();
  if (sqe == nullptr) return Refused("submit", EBUSY);
  io_uring_prep_nop(sqe);
  io_uring_sqe_set_data64(sqe, 0);
  int submitted = 0;
  do {
    submitted = io_uring_submit_and_wait(&ring_, 1);
  } while (submitted == -EINTR);
  if (submitted < 0) return Refused("enter", -submitted);
  std::vector<RawResult> results;
  (void)Reap(&results);
  if (results.size() != 1) return Refused("a first operation", EIO);
  return absl::OkStatus();
}

// Best effort: saves taking and dropping a file reference per read. The second
// half of the table are the buffered descriptors.
void UringBackend::RegisterFiles() {
  std::vector<int> fds;
  for (const auto& file : files_) fds.push_back(file->fd());
  for (const auto& file : files_) fds.push_back(file->buffered_fd());
  if (fds.empty()) return;
  files_registered_ =
      io_uring_register_files(&ring_, fds.data(),
                              static_cast<unsigned>(fds.size())) == 0;
}

io_uring_sqe* UringBackend::NextSqe() {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (sqe != nullptr) return sqe;
  (void)io_uring_submit(&ring_);
  return io_uring_get_sqe(&ring_);
}

void UringBackend::ArmWake() {
  if (wake_armed_) return;
  io_uring_sqe* sqe = NextSqe();
  if (sqe == nullptr) return;  // the next Wait tries again
  io_uring_prep_poll_add(sqe, wake_fd_, POLLIN);
  io_uring_sqe_set_data64(sqe, kWakeTag);
  wake_armed_ = true;
}

const RegisteredPiece* UringBackend::PieceOf(const RawRead& read) const {
  auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), read.destination,
                       [](const std::byte* at, const RegisteredPiece& p) {
                         return at < p.begin;
                       });
  if (after == pieces_.begin()) return nullptr;
  const RegisteredPiece& piece = *std::prev(after);
  const uint64_t from = static_cast<uint64_t>(read.destination - piece.begin);
  return from + read.length <= piece.length ? &piece : nullptr;
}

void UringBackend::Push(const RawRead& read) {
  io_uring_sqe* sqe = NextSqe();
  // The ring has a place for each of capacity() reads and for the poll.
  CHECK(sqe != nullptr);
  const size_t index = static_cast<size_t>(read.file);
  const File& file = *files_[index];
  const int fd =
      files_registered_
          ? static_cast<int>(index + (read.buffered ? files_.size() : 0))
          : (read.buffered ? file.buffered_fd() : file.fd());
  const RegisteredPiece* piece = PieceOf(read);
  if (piece != nullptr) {
    io_uring_prep_read_fixed(sqe, fd, read.destination, read.length,
                             read.offset,
                             static_cast<int>(piece - pieces_.data()));
  } else {
    io_uring_prep_read(sqe, fd, read.destination, read.length, read.offset);
  }
  if (files_registered_) sqe->flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data64(sqe, read.tag);
}

StatusOr<bool> UringBackend::Enter() {
  const int submitted = io_uring_submit_and_wait(&ring_, 1);
  if (submitted >= 0) return true;
  switch (-submitted) {
    case EINTR:
      return false;
    case EBUSY:  // results must be taken before more can be submitted
      return true;
    case EAGAIN:
    case ENOMEM:
      // The kernel is short of memory for requests now; what is in flight will
      // give some back.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return true;
    default:
      return absl::InternalError(absl::StrFormat("io_uring_enter failed: %s",
                                                 std::strerror(-submitted)));
  }
}

bool UringBackend::Reap(std::vector<RawResult>* results) {
  bool woken = false;
  unsigned head = 0;
  unsigned count = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    ++count;
    if (cqe->user_data == kWakeTag) {
      woken = true;
    } else {
      results->push_back({cqe->user_data, cqe->res});
    }
  }
  io_uring_cq_advance(&ring_, count);
  if (woken) {
    wake_armed_ = false;
    uint64_t ignored = 0;
    (void)!read(wake_fd_, &ignored, sizeof(ignored));
  }
  return woken;
}

Status UringBackend::Wait(std::vector<RawResult>* results) {
  const size_t before = results->size();
  while (true) {
    ArmWake();
    ASSIGN_OR_RETURN(const bool look, Enter());
    if (!look) continue;
    const bool woken = Reap(results);
    if (woken || results->size() > before) return absl::OkStatus();
  }
}

void UringBackend::Wake() {
  const uint64_t one = 1;
  // Fails only where the counter is full, and then it is readable anyway.
  (void)!write(wake_fd_, &one, sizeof(one));
}

StatusOr<uint64_t> UringBackend::RegisterBuffers(
    std::span<const std::span<std::byte>> buffers) {
  if (!pieces_.empty()) {
    (void)io_uring_unregister_buffers(&ring_);
    pieces_.clear();
  }
  std::vector<RegisteredPiece> pieces = CutForRegistration(buffers);
  if (pieces.empty()) return uint64_t{0};
  std::vector<iovec> table;
  uint64_t bytes = 0;
  for (const RegisteredPiece& piece : pieces) {
    table.push_back({piece.begin, piece.length});
    bytes += piece.length;
  }
  // All or nothing: the kernel takes back a table that it began.
  const int error = -io_uring_register_buffers(
      &ring_, table.data(), static_cast<unsigned>(table.size()));
  if (error != 0) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "cannot register %d bytes of buffers with io_uring: %s (memlock limit "
        "%s); reading into unregistered memory, which may be slower",
        bytes, std::strerror(error), MemlockLimit()));
  }
  pieces_ = std::move(pieces);
  return bytes;
}

}  // namespace

std::vector<RegisteredPiece> CutForRegistration(
    std::span<const std::span<std::byte>> buffers) {
  std::vector<RegisteredPiece> pieces;
  for (const std::span<std::byte>& buffer : buffers) {
    for (uint64_t at = 0; at < buffer.size(); at += kMaxPieceBytes) {
      pieces.push_back(
          {buffer.data() + at,
           std::min<uint64_t>(kMaxPieceBytes, buffer.size() - at)});
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const RegisteredPiece& a, const RegisteredPiece& b) {
              return a.begin < b.begin;
            });
  return pieces;
}

std::unique_ptr<ReadBackend> MakeUringBackend(
    std::vector<std::shared_ptr<File>> files, int depth,
    std::optional<uint32_t> first_flags) {
  return std::make_unique<UringBackend>(std::move(files), depth,
                                        first_flags.value_or(kBestFlags));
}

}  // namespace coldstream
