#include "tools/batch_scan.h"

#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "tools/batch_result.h"
#include "tools/line_reader.h"

namespace coldstream {
namespace {

using Json = nlohmann::json;

// Far more than the longest answer.
constexpr size_t kMostRecordBytes = size_t{256} << 20;

// Takes three members off the top of a record and skips over the rest, which
// can be many megabytes of scores, without keeping it.
class RecordReader final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Scalar(/*is_null=*/true); }
  bool boolean(bool) override { return Scalar(); }
  bool number_integer(int64_t) override { return Scalar(); }
  bool number_unsigned(uint64_t) override { return Scalar(); }
  bool number_float(double, const std::string&) override { return Scalar(); }
  bool string(std::string& value) override {
    if (depth_ == 1 && key_ == "id") id_ = value;
    if (depth_ == 1 && key_ == "custom_id") record_.custom_id = value;
    return Scalar();
  }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(size_t) override {
    if (depth_ == 1 && key_ == "error") record_.failed = true;
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    ++depth_;
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      key_ = name;
      has_error_ = has_error_ || name == "error";
    }
    return true;
  }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception&) override {
    return false;
  }

  // Of a whole value; nothing if it is no record.
  StatusOr<BatchRecord> Take() {
    record_.line = LineOfBatchResultId(id_);
    if (record_.line > 0 && has_error_) return record_;
    return absl::DataLossError("it is not the record of a batch");
  }

 private:
  bool Scalar(bool is_null = false) {
    if (depth_ == 1 && key_ == "error" && !is_null) record_.failed = true;
    return true;
  }
  bool Close() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::string key_;  // of the outermost object
  std::string id_;
  bool has_error_ = false;
  BatchRecord record_;
};

Status AtLine(const std::string& path, const LineReader::Line& line,
              const std::string& why) {
  return absl::DataLossError(absl::StrFormat(
      "%s: line %d, at byte %d: %s; the lines before it are good: cut it "
      "there, or choose another output",
      path, line.number, line.offset, why));
}

}  // namespace

StatusOr<BatchRecord> ParseBatchRecord(std::string_view text) {
  RecordReader reader;
  if (!Json::sax_parse(text.begin(), text.end(), &reader))
    return absl::InvalidArgumentError("it is not JSON");
  return reader.Take();
}

StatusOr<BatchScan> ScanBatchOutput(const std::string& path) {
  ASSIGN_OR_RETURN(const auto reader,
                   LineReader::Open(path, {.most_bytes = kMostRecordBytes}));
  BatchScan scan;
  Status damage;  // of the line before, good if it was the last
  LineReader::Line line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next(&line));
    if (!more || !line.terminated) break;
    RETURN_IF_ERROR(damage);
    if (line.cut()) return AtLine(path, line, "it is too long for a record");
    const StatusOr<BatchRecord> record = ParseBatchRecord(line.text);
    if (absl::IsInvalidArgument(record.status())) {
      damage = AtLine(path, line, MessageOf(record.status()));
      continue;
    }
    if (!record.ok()) return AtLine(path, line, MessageOf(record.status()));
    const auto [at, is_new] =
        scan.done.emplace(record->line, FingerprintOf(record->custom_id));
    if (!is_new) {
      return AtLine(path, line,
                    absl::StrFormat("it is a second record of line %d of the "
                                    "input",
                                    record->line));
    }
    scan.failed += record->failed ? 1 : 0;
    scan.whole_bytes = reader->position();
  }
  return scan;
}

}  // namespace coldstream
