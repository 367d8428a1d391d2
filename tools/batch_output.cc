#include "tools/batch_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_format.h"

namespace coldstream {
namespace {

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat one = {};
  struct stat other = {};
  return stat(a.c_str(), &one) == 0 && stat(b.c_str(), &other) == 0 &&
         S_ISREG(one.st_mode) && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

StatusOr<std::unique_ptr<BatchOutput>> BatchOutput::Open(
    const BatchOutputOptions& options) {
  if (options.path == "-") {
    return std::unique_ptr<BatchOutput>(new BatchOutput(
        LineFile::OverDescriptor(STDOUT_FILENO, "standard output")));
  }
  // Before it is opened, so that a refusal leaves nothing behind.
  for (const std::string& taken : {options.path, BatchJobPath(options.path)}) {
    if (!IsSameFile(taken, options.input)) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: expected another file than the input", taken));
  }
  ASSIGN_OR_RETURN(auto file, LineFile::Open(options.path));
  std::unique_ptr<BatchOutput> output(new BatchOutput(std::move(file)));
  if (!output->file_->regular()) return output;
  RETURN_IF_ERROR(output->CheckJob(options.job));
  ASSIGN_OR_RETURN(output->scan_, ScanBatchOutput(options.path));
  output->torn_bytes_ = output->file_->size() - output->scan_.whole_bytes;
  if (output->torn_bytes_ > 0)
    RETURN_IF_ERROR(output->file_->Truncate(output->scan_.whole_bytes));
  return output;
}

// The job file is there before the first record.
Status BatchOutput::CheckJob(const BatchJob& job) const {
  const std::string& path = file_->path();
  if (file_->size() == 0) return WriteBatchJob(path, job);
  const StatusOr<BatchJob> begun = ReadBatchJob(path);
  if (absl::IsNotFound(begun.status())) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: it is not empty and no batch of ours (there is no %s): choose "
        "another output",
        path, BatchJobPath(path)));
  }
  RETURN_IF_ERROR(begun.status());
  return CheckSameBatchJob(path, *begun, job);
}

StatusOr<bool> BatchOutput::IsDone(int64_t line,
                                   std::string_view custom_id) const {
  const auto found = scan_.done.find(line);
  if (found == scan_.done.end()) return false;
  if (found->second == FingerprintOf(custom_id)) return true;
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: its record of line %d of the input has another custom_id than the "
      "line has now (\"%s\"): the input was changed",
      file_->path(), line, std::string(custom_id)));
}

}  // namespace coldstream
