#include "runtime/profile_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "io/printable.h"
#include "scheduler/memory_plan.h"

namespace coldstream {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "coldstream-profile";
constexpr size_t kMaxText = 512;
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxLayers = 1 << 20;
constexpr double kMaxRate = 1e18;
constexpr size_t kMaxRates = 64;

template <typename Enum>
struct Word {
  Enum value;
  const char* word;
};
constexpr Word<IoBackendKind> kBackends[] = {{IoBackendKind::kAuto, "auto"},
                                             {IoBackendKind::kUring, "uring"},
                                             {IoBackendKind::kPread, "pread"}};
constexpr Word<DirectMode> kDirectModes[] = {{DirectMode::kAuto, "auto"},
                                             {DirectMode::kOn, "on"},
                                             {DirectMode::kOff, "off"}};

template <typename Enum, size_t kCount>
const char* WordOf(Enum value, const Word<Enum> (&words)[kCount]) {
  for (const auto& row : words)
    if (row.value == value) return row.word;
  return words[0].word;
}

// Reads an entry's fields; after the first that is not as it should be,
// error() says what was wrong with it.
class FieldReader {
 public:
  explicit FieldReader(const Json& entry) : entry_(entry) {
    if (!entry.is_object()) error_ = "it is no object";
  }

  bool Has(const char* name) const {
    return error_.empty() && entry_.contains(name);
  }
  double Rate(const char* name) {
    const Json* value = Find(name);
    if (value == nullptr) return 0;
    return CheckedRate(name, *value);
  }
  // Zero says that there was nothing to measure.
  double RateOrZero(const char* name) {
    const Json* value = Find(name);
    if (value == nullptr || *value == 0) return 0;
    return CheckedRate(name, *value);
  }
  double CheckedRate(std::string_view name, const Json& value) {
    if (value.is_number()) {
      const double rate = value.get<double>();
      if (std::isfinite(rate) && rate > 0 && rate <= kMaxRate) return rate;
    }
    Refuse(name, "a rate above zero");
    return 0;
  }
  int64_t Integer(const char* name, int64_t low, int64_t high,
                  int64_t multiple = 1) {
    const Json* value = Find(name);
    if (value == nullptr) return low;
    // A large unsigned number would come out as a negative one.
    const bool whole =
        value->is_number_integer() &&
        (!value->is_number_unsigned() ||
         value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
    const int64_t number = whole ? value->get<int64_t>() : 0;
    if (whole && number >= low && number <= high && number % multiple == 0)
      return number;
    Refuse(name, absl::StrFormat("%d..%d", low, high));
    return low;
  }
  bool Bool(const char* name) {
    const Json* value = Find(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) Refuse(name, "true or false");
    return value->is_boolean() && value->get<bool>();
  }
  std::string Text(const char* name) {
    const Json* value = Find(name);
    if (value == nullptr) return "";
    if (value->is_string() &&
        value->get_ref<const std::string&>().size() <= kMaxText)
      return value->get<std::string>();
    Refuse(name, "a short text");
    return "";
  }
  template <typename Enum, size_t kCount>
  Enum Choice(const char* name, const Word<Enum> (&words)[kCount]) {
    const std::string text = Text(name);
    for (const auto& row : words)
      if (text == row.word) return row.value;
    Refuse(name, "one of the words for it");
    return words[0].value;
  }
  // An object's members; an empty object if it is not one.
  const Json& Object(const char* name) {
    static const Json kNone = Json::object();
    const Json* value = Find(name);
    if (value != nullptr && value->is_object()) return *value;
    Refuse(name, "an object");
    return kNone;
  }

  void Refuse(std::string_view name, std::string_view expected) {
    if (error_.empty()) {
      error_ = absl::StrFormat("%s is not %s", Printable(name, 80),
                               std::string(expected));
    }
  }
  const std::string& error() const { return error_; }

 private:
  const Json* Find(const char* name) {
    if (!error_.empty()) return nullptr;
    const auto found = entry_.find(name);
    if (found != entry_.end()) return &*found;
    error_ = absl::StrFormat("%s is missing", name);
    return nullptr;
  }

  const Json& entry_;
  std::string error_;
};

DiskRecord ReadDisk(FieldReader* fields) {
  DiskRecord record;
  record.bytes_per_second = fields->Rate("bytes_per_second");
  record.chunk_bytes = static_cast<uint64_t>(fields->Integer(
      "chunk_bytes", kMinIoChunkBytes, kMaxIoChunkBytes, kMinIoChunkBytes));
  record.depth = static_cast<int>(fields->Integer("depth", 1, kMaxIoDepth));
  record.direct = fields->Bool("direct");
  record.registered = fields->Bool("registered");
  record.backend = fields->Text("backend");
  record.date = fields->Text("date");
  return record;
}

ComputeRecord ReadCompute(FieldReader* fields) {
  ComputeRecord record;
  record.date = fields->Text("date");
  const Json& rates = fields->Object("rates");
  if (rates.size() > kMaxRates) fields->Refuse("rates", "a short list");
  for (const auto& [name, value] : rates.items()) {
    if (name.size() > kMaxText) fields->Refuse("a rate's name", "short");
    if (!fields->error().empty()) break;
    record.rates[name] = fields->CheckedRate(name, value);
  }
  return record;
}

std::pair<TunedKey, TunedSettings> ReadTuned(FieldReader* fields) {
  TunedKey key;
  key.disk = fields->Text("disk");
  key.model = fields->Text("model");
  key.ram_bytes =
      static_cast<uint64_t>(fields->Integer("ram_bytes", 1, INT64_MAX));
  key.threads = static_cast<int>(fields->Integer("threads", 1, kMaxThreads));
  if (fields->Has("device")) {
    key.device = fields->Text("device");
    key.vram_bytes =
        static_cast<uint64_t>(fields->Integer("vram_bytes", 1, INT64_MAX));
    if (fields->Has("cpu_layers"))
      key.cpu_layers =
          static_cast<int>(fields->Integer("cpu_layers", 0, kMaxLayers));
  }
  TunedSettings tuned;
  tuned.prefetch_depth = static_cast<int>(
      fields->Integer("prefetch_depth", kMinPrefetchDepth, kMaxPrefetchDepth));
  tuned.io_depth =
      static_cast<int>(fields->Integer("io_depth", 1, kMaxIoDepth));
  tuned.chunk_bytes = static_cast<uint64_t>(fields->Integer(
      "chunk_bytes", kMinIoChunkBytes, kMaxIoChunkBytes, kMinIoChunkBytes));
  tuned.backend = fields->Choice("backend", kBackends);
  tuned.direct = fields->Choice("direct", kDirectModes);
  tuned.bytes_per_second = fields->RateOrZero("bytes_per_second");
  tuned.tokens_per_second = fields->Rate("tokens_per_second");
  tuned.date = fields->Text("date");
  return {key, tuned};
}

class ProfileReader {
 public:
  explicit ProfileReader(const Json& root) : root_(root) {}

  ParsedProfile Read() {
    for (const auto& [key, entry] : Section("disks").items()) {
      FieldReader fields(entry);
      DiskRecord record = ReadDisk(&fields);
      if (Holds(key, fields)) parsed_.data.disks[key] = std::move(record);
    }
    for (const auto& [key, entry] : Section("compute").items()) {
      FieldReader fields(entry);
      ComputeRecord record = ReadCompute(&fields);
      if (Holds(key, fields)) parsed_.data.compute[key] = std::move(record);
    }
    for (const Json& entry : Section("tuned")) {
      FieldReader fields(entry);
      auto [key, settings] = ReadTuned(&fields);
      if (Holds("a tuned setting", fields))
        parsed_.data.tuned[std::move(key)] = std::move(settings);
    }
    return std::move(parsed_);
  }

 private:
  // An absent section is an empty one.
  const Json& Section(const char* name) const {
    static const Json kNone = Json::object();
    const auto found = root_.find(name);
    return found == root_.end() || found->is_primitive() ? kNone : *found;
  }

  bool Holds(const std::string& key, const FieldReader& fields) {
    std::string error = fields.error();
    if (error.empty() && key.size() > kMaxText) error = "its key is too long";
    if (error.empty()) return true;
    if (++parsed_.refused == 1)
      parsed_.refusal = absl::StrCat(Printable(key, 80), ": ", error);
    return false;
  }

  const Json& root_;
  ParsedProfile parsed_;
};

template <typename Map>
void DropOldest(Map* entries) {
  while (entries->size() > kMaxProfileEntries) {
    entries->erase(std::min_element(entries->begin(), entries->end(),
                                    [](const auto& a, const auto& b) {
                                      return a.second.date < b.second.date;
                                    }));
  }
}

Json DiskJson(const DiskRecord& record) {
  return {{"bytes_per_second", record.bytes_per_second},
          {"chunk_bytes", record.chunk_bytes},
          {"depth", record.depth},
          {"direct", record.direct},
          {"registered", record.registered},
          {"backend", record.backend},
          {"date", record.date}};
}

Json TunedJson(const TunedKey& key, const TunedSettings& tuned) {
  Json json = {{"disk", key.disk},
               {"model", key.model},
               {"ram_bytes", key.ram_bytes},
               {"threads", key.threads}};
  if (!key.device.empty()) {
    json["device"] = key.device;
    json["vram_bytes"] = key.vram_bytes;
    if (key.cpu_layers > 0) json["cpu_layers"] = key.cpu_layers;
  }
  json["prefetch_depth"] = tuned.prefetch_depth;
  json["io_depth"] = tuned.io_depth;
  json["chunk_bytes"] = tuned.chunk_bytes;
  json["backend"] = WordOf(tuned.backend, kBackends);
  json["direct"] = WordOf(tuned.direct, kDirectModes);
  json["bytes_per_second"] = tuned.bytes_per_second;
  json["tokens_per_second"] = tuned.tokens_per_second;
  json["date"] = tuned.date;
  return json;
}

}  // namespace

StatusOr<ParsedProfile> ParseProfile(std::string_view text) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object())
    return absl::DataLossError("it is not a whole JSON object");
  const auto format = root.find("format");
  if (format == root.end() || *format != kFormat) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it is JSON of something else: \"format\" is not \"", kFormat, "\""));
  }
  const auto version = root.find("version");
  if (version == root.end() || !version->is_number_integer() || *version < 1)
    return absl::DataLossError("it has no version");
  if (*version > kProfileVersion) {
    return absl::FailedPreconditionError(
        absl::StrFormat("it is of a newer coldstream (version %s, this one "
                        "knows %d)",
                        version->dump(), kProfileVersion));
  }
  return ProfileReader(root).Read();
}

std::string FormatProfile(const ProfileData& data) {
  ProfileData kept = data;
  DropOldest(&kept.disks);
  DropOldest(&kept.compute);
  DropOldest(&kept.tuned);
  Json root = {{"format", kFormat}, {"version", kProfileVersion}};
  root["disks"] = Json::object();
  for (const auto& [key, record] : kept.disks)
    root["disks"][key] = DiskJson(record);
  root["compute"] = Json::object();
  for (const auto& [key, record] : kept.compute) {
    root["compute"][key] = {{"rates", record.rates}, {"date", record.date}};
  }
  root["tuned"] = Json::array();
  for (const auto& [key, tuned] : kept.tuned)
    root["tuned"].push_back(TunedJson(key, tuned));
  return root.dump(2, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace) +
         "\n";
}

}  // namespace coldstream
