// Takes the options out of a request's body one by one, and knows at the end
// whether there were others.
//
// An option that is null is one that is not there. After the first that is not
// as it should be all others read as not there, and error() says what was wrong
// with it.
//
//   BatchFields fields(body, "body");
//   request.temperature = fields.Number("temperature", 0, 100).value_or(1);
//   fields.RefuseOthers();
//   if (fields.error()) ...
// Lifetime: the body must outlive it.
#ifndef COLDSTREAM_TOOLS_BATCH_FIELDS_H_
#define COLDSTREAM_TOOLS_BATCH_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tools/batch_error.h"

namespace coldstream {

class BatchFields {
 public:
  // `path`: what the names in errors begin with; "" for the line itself.
  BatchFields(const nlohmann::json& object, std::string path)
      : object_(object), path_(std::move(path)) {}

  // Null where it is not there.
  const nlohmann::json* Find(const char* name);
  // As Find, but an error where it is not there.
  const nlohmann::json* Require(const char* name, const char* expected);

  std::optional<int64_t> Integer(const char* name, int64_t low, int64_t high);
  std::optional<double> Number(const char* name, double low, double high);
  std::optional<bool> Bool(const char* name);
  std::optional<std::string> String(const char* name);

  // An option that may be there only with a value at which it does nothing.
  void OnlyNeutral(const char* name,
                   std::initializer_list<nlohmann::json> neutral);
  // May be there with any value: it says nothing about the answer.
  void Ignore(const char* name) { known_.insert(name); }
  // Everything that was not asked for is an error.
  void RefuseOthers();

  // The first wins.
  void Fail(const char* code, std::string_view name, std::string_view expected,
            const nlohmann::json& got);
  void Fail(BatchError error);
  const std::optional<BatchError>& error() const { return error_; }

 private:
  std::string PathOf(std::string_view name) const;

  const nlohmann::json& object_;
  const std::string path_;
  std::set<std::string, std::less<>> known_;
  std::optional<BatchError> error_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_BATCH_FIELDS_H_
