#include "tools/batch_fields.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "io/printable.h"
#include "tools/strict_json.h"

namespace coldstream {

using Json = nlohmann::json;

const Json* BatchFields::Find(const char* name) {
  known_.insert(name);
  if (error_) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json* BatchFields::Require(const char* name, const char* expected) {
  const Json* value = Find(name);
  if (value == nullptr) {
    Fail({.code = "missing_required_parameter",
          .message = absl::StrFormat("%s: expected %s, got nothing",
                                     PathOf(name), expected),
          .param = PathOf(name)});
  }
  return value;
}

std::optional<int64_t> BatchFields::Integer(const char* name, int64_t low,
                                            int64_t high) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected =
      absl::StrFormat("an integer from %d to %d", low, high);
  if (!value->is_number_integer()) {
    Fail("invalid_type", name, expected, *value);
    return std::nullopt;
  }
  // Above the range of int64_t it would come out negative.
  const bool huge = value->is_number_unsigned() &&
                    value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t number = huge ? 0 : value->get<int64_t>();
  if (!huge && number >= low && number <= high) return number;
  Fail("invalid_value", name, expected, *value);
  return std::nullopt;
}

std::optional<double> BatchFields::Number(const char* name, double low,
                                          double high) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected =
      absl::StrFormat("a number from %g to %g", low, high);
  if (!value->is_number()) {
    Fail("invalid_type", name, expected, *value);
    return std::nullopt;
  }
  const auto number = value->get<double>();
  if (number >= low && number <= high) return number;
  Fail("invalid_value", name, expected, *value);
  return std::nullopt;
}

std::optional<bool> BatchFields::Bool(const char* name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  Fail("invalid_type", name, "true or false", *value);
  return std::nullopt;
}

std::optional<std::string> BatchFields::String(const char* name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  Fail("invalid_type", name, "a string", *value);
  return std::nullopt;
}

void BatchFields::OnlyNeutral(const char* name,
                              std::initializer_list<Json> neutral) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  std::string expected;
  for (const Json& one : neutral) {
    if (*value == one) return;
    expected += expected.empty() ? one.dump() : " or " + one.dump();
  }
  Fail("unsupported_value", name, expected + " (no other is supported)",
       *value);
}

void BatchFields::RefuseOthers() {
  for (const auto& [name, value] : object_.items()) {
    if (error_) return;
    if (value.is_null() || known_.contains(name)) continue;
    const std::string path = PathOf(name);
    Fail({.code = "unsupported_parameter",
          .message = absl::StrFormat(
              "%s: expected no such option (it is not supported), got %s", path,
              DescribeJson(value)),
          .param = path});
  }
}

void BatchFields::Fail(const char* code, std::string_view name,
                       std::string_view expected, const Json& got) {
  const std::string path = PathOf(name);
  Fail({.code = code,
        .message = absl::StrFormat("%s: expected %s, got %s", path,
                                   std::string(expected), DescribeJson(got)),
        .param = path});
}

void BatchFields::Fail(BatchError error) {
  if (!error_) error_ = std::move(error);
}

std::string BatchFields::PathOf(std::string_view name) const {
  const std::string shown = Printable(name, 80);
  return path_.empty() ? shown : path_ + "." + shown;
}

}  // namespace coldstream
