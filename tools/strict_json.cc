#include "tools/strict_json.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "io/printable.h"
#include "runtime/utf8.h"

namespace coldstream {
namespace {

using Json = nlohmann::json;

// Builds the value from the library's events; false ends the parsing.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  // Builds `root`, which must outlive it.
  explicit Builder(Json* root) : root_(root) {}

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(int64_t value) override { return Put(value); }
  bool number_unsigned(uint64_t value) override { return Put(value); }
  bool number_float(double value, const std::string&) override {
    return Put(value);
  }
  bool string(std::string& value) override { return Put(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(Json::object()); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    auto [member, is_new] = open_.back()->emplace(name, nullptr);
    member_ = &*member;
    if (!is_new) {
      error_ = absl::StrFormat("the member \"%s\" is there twice",
                               Printable(name, 80));
    }
    return is_new;
  }

  bool parse_error(size_t column, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The text begins with the library's own position.
    std::string_view what = error.what();
    const size_t at = what.find("column ");
    const size_t colon =
        at == std::string_view::npos ? at : what.find(": ", at);
    if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
    error_ = absl::StrFormat("column %d: %s", column, Printable(what, 200));
    return false;
  }

  const std::string& error() const { return error_; }

 private:
  // The place of the next value, in what was opened last.
  Json* Place(Json value) {
    if (open_.empty()) {
      *root_ = std::move(value);
      return root_;
    }
    if (open_.back()->is_object()) {
      *member_ = std::move(value);
      return member_;
    }
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }
  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(Json value) {
    if (open_.size() == kMostJsonDepth) {
      error_ = absl::StrFormat(
          "expected at most %d levels of nesting, got more", kMostJsonDepth);
      return false;
    }
    open_.push_back(Place(std::move(value)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  Json* const root_;
  std::vector<Json*> open_;
  Json* member_ = nullptr;
  std::string error_;
};

}  // namespace

StatusOr<Json> ParseStrictJson(std::string_view text) {
  const size_t valid = ValidUtf8Prefix(text);
  if (valid < text.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("column %d: expected UTF-8, got the byte 0x%02X",
                        valid + 1, static_cast<unsigned char>(text[valid])));
  }
  Json root;
  Builder builder(&root);
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    return absl::InvalidArgumentError(builder.error());
  return root;
}

std::string DescribeJson(const Json& value) {
  constexpr size_t kMostShown = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  if (value.is_string()) {
    return absl::StrFormat(
        "\"%s\"", Printable(value.get_ref<const std::string&>(), kMostShown));
  }
  return value.dump();
}

}  // namespace coldstream
