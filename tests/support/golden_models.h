// The golden models (tests/golden/README.md) for tests of whole engines.
#ifndef COLDSTREAM_TESTS_SUPPORT_GOLDEN_MODELS_H_
#define COLDSTREAM_TESTS_SUPPORT_GOLDEN_MODELS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/byte_units.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/support/named_budget.h"

namespace coldstream {

struct Golden {
  std::string file;
  std::string logits_file;
  std::vector<TokenId> ids;
  int64_t n_vocab = 0;
  double peer_nmse = 0;

  double bound() const { return 1.5 * peer_nmse + 1e-6; }
  // COLDSTREAM_TEST_DATA names the folder where a test runs on another machine
  // than the one it was built on.
  static std::string Folder() {
    const char* const data = std::getenv("COLDSTREAM_TEST_DATA");
    return std::string(data != nullptr ? data : COLDSTREAM_TEST_DATA) +
           "/golden/";
  }
  std::string path() const { return Folder() + file; }
  friend void PrintTo(const Golden& golden, std::ostream* out) {
    *out << golden.file;
  }
};

inline std::vector<Golden> LoadGoldens() {
  std::ifstream in(Golden::Folder() + "goldens.json");
  std::vector<Golden> goldens;
  for (const nlohmann::json& row : nlohmann::json::parse(in)) {
    goldens.push_back({row.at("file"), row.at("logits"), row.at("ids"),
                       row.at("n_vocab"), row.at("peer_nmse")});
  }
  return goldens;
}

inline Golden GoldenNamed(const std::string& file) {
  for (const Golden& golden : LoadGoldens())
    if (golden.file == file) return golden;
  ADD_FAILURE() << file;
  return {};
}

// A name that GoogleTest takes.
inline std::string TestNameOf(const Golden& golden) {
  std::string name = golden.file;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

// The independent engine's logits: [ids][n_vocab].
inline std::vector<float> ExactLogits(const Golden& golden) {
  const size_t count = golden.ids.size() * static_cast<size_t>(golden.n_vocab);
  std::vector<float> values(count);
  std::ifstream in(Golden::Folder() + golden.logits_file, std::ios::binary);
  in.read(reinterpret_cast<char*>(values.data()),
          static_cast<std::streamsize>(count * sizeof(float)));
  EXPECT_EQ(in.gcount(), static_cast<std::streamsize>(count * sizeof(float)))
      << golden.logits_file;
  return values;
}

// Logits of every position, fed `chunk` tokens a pass, by an engine with
// `options`, whose sizes are filled in.
inline StatusOr<std::vector<float>> EvaluateGolden(
    const Golden& golden, EngineOptions options, int64_t chunk,
    uint64_t unit_bytes = kDefaultUnitBytes) {
  ASSIGN_OR_RETURN(auto model, Model::Open({.path = golden.path(),
                                            .unit_bytes = unit_bytes}));
  const auto tokens = static_cast<int64_t>(golden.ids.size());
  options.context = tokens;
  options.batch_tokens = tokens;
  options.logit_rows = tokens;
  ASSIGN_OR_RETURN(auto engine, Engine::Create(model, options));
  auto session = engine->NewSession();
  std::vector<float> all(golden.ids.size() *
                         static_cast<size_t>(golden.n_vocab));
  RETURN_IF_ERROR(session->Evaluate(
      golden.ids, chunk, Session::Logits::kAll,
      [&](int64_t index, std::span<const float> logits) {
        EXPECT_EQ(logits.size(), static_cast<size_t>(golden.n_vocab));
        std::copy(logits.begin(), logits.end(),
                  all.begin() + index * golden.n_vocab);
        return absl::OkStatus();
      }));
  return all;
}

// The least device memory that the error for one byte names.
inline uint64_t LeastVram(const Golden& golden, EngineOptions options,
                          uint64_t unit_bytes) {
  options.vram_bytes = 1;
  return NamedBudget(EvaluateGolden(golden, options, 1, unit_bytes).status(),
                     "--vram");
}

inline double Nmse(const std::vector<float>& got,
                   const std::vector<float>& exact) {
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference =
        static_cast<double>(got[i]) - static_cast<double>(exact[i]);
    error += difference * difference;
    power += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
  }
  return error / power;
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_GOLDEN_MODELS_H_
