#include "tools/batch_job.h"

#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/strings/str_format.h"
#include "io/atomic_file.h"
#include "io/printable.h"
#include "tools/strict_json.h"

namespace coldstream {
namespace {

constexpr char kFormat[] = "coldstream-batch-job";
constexpr int kVersion = 1;
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr size_t kMostShown = 200;

struct Part {
  const char* name;
  std::string BatchJob::*text;
};
constexpr Part kParts[] = {{"model", &BatchJob::model},
                           {"options", &BatchJob::options},
                           {"input", &BatchJob::input}};

StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open())
    return absl::NotFoundError(path + ": it cannot be opened");
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace

std::string BatchJobPath(const std::string& output) { return output + ".job"; }

StatusOr<BatchJob> ReadBatchJob(const std::string& output) {
  const std::string path = BatchJobPath(output);
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  const auto damaged = [&](const std::string& why) {
    return absl::DataLossError(absl::StrFormat(
        "%s: expected what the job was begun with, %s", path, why));
  };
  const auto json = ParseStrictJson(text);
  if (!json.ok()) return damaged("got no JSON: " + MessageOf(json.status()));
  const auto format = json->find("format");
  if (!json->is_object() || format == json->end() || *format != kFormat)
    return damaged("got something else");
  const auto version = json->find("version");
  if (version == json->end() || *version != kVersion) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: expected version %d, got %s", path, kVersion,
        version == json->end() ? "none" : DescribeJson(*version)));
  }
  BatchJob job;
  for (const Part& part : kParts) {
    const auto found = json->find(part.name);
    if (found == json->end() || !found->is_string())
      return damaged(absl::StrFormat("got none for \"%s\"", part.name));
    job.*part.text = found->get<std::string>();
  }
  return job;
}

Status WriteBatchJob(const std::string& output, const BatchJob& job) {
  nlohmann::ordered_json json = {{"format", kFormat}, {"version", kVersion}};
  for (const Part& part : kParts) json[part.name] = job.*part.text;
  const std::string text =
      json.dump(2, ' ', /*ensure_ascii=*/false,
                nlohmann::ordered_json::error_handler_t::replace) +
      "\n";
  ASSIGN_OR_RETURN(const auto file,
                   AtomicFile::Create(BatchJobPath(output), text.size()));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  return file->Commit();
}

Status CheckSameBatchJob(const std::string& output, const BatchJob& begun,
                         const BatchJob& now) {
  for (const Part& part : kParts) {
    if (begun.*part.text == now.*part.text) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: it was begun with another %s (%s; now %s): choose another output, "
        "or remove it and %s",
        output, part.name, Printable(begun.*part.text, kMostShown),
        Printable(now.*part.text, kMostShown), BatchJobPath(output)));
  }
  return absl::OkStatus();
}

}  // namespace coldstream
