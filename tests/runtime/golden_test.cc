// Every golden model against an independent engine's logits, at once, token by
// token and in chunks of seven, in every ISA row this CPU has.
//
// Bounds: tests/golden/README.md. NMSE <= 1e-7 with F32 arithmetic, and
// <= 1.5 x peer_nmse + 1e-6 with 8-bit or f16 activations.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/cpu_features.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/session.h"

namespace coldstream {
namespace {

const std::string kFolder = std::string(COLDSTREAM_TEST_DATA) + "/golden/";

struct Golden {
  std::string file;
  std::string logits_file;
  std::vector<TokenId> ids;
  int64_t n_vocab = 0;
  double peer_nmse = 0;
};

std::vector<Golden> LoadGoldens() {
  std::ifstream in(kFolder + "goldens.json");
  std::vector<Golden> goldens;
  for (const nlohmann::json& row : nlohmann::json::parse(in)) {
    goldens.push_back({row.at("file"), row.at("logits"), row.at("ids"),
                       row.at("n_vocab"), row.at("peer_nmse")});
  }
  return goldens;
}

std::vector<float> LoadFloats(const std::string& path, size_t count) {
  std::vector<float> values(count);
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(values.data()),
          static_cast<std::streamsize>(count * sizeof(float)));
  EXPECT_EQ(in.gcount(), static_cast<std::streamsize>(count * sizeof(float)))
      << path;
  return values;
}

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> isas;
  for (Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512})
    if (OpsFor(isa).ok()) isas.push_back(isa);
  return isas;
}

// Logits of every position, fed `chunk` tokens a pass.
StatusOr<std::vector<float>> Evaluate(const Golden& golden, Isa isa,
                                      int64_t chunk) {
  ASSIGN_OR_RETURN(auto model, Model::Open({.path = kFolder + golden.file}));
  const auto tokens = static_cast<int64_t>(golden.ids.size());
  EngineOptions options;
  options.ram_bytes = uint64_t{1} << 30;
  options.threads = 2;
  options.context = tokens;
  options.batch_tokens = tokens;
  options.logit_rows = tokens;
  options.isa = isa;
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

double Nmse(const std::vector<float>& got, const std::vector<float>& exact) {
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference =
        static_cast<double>(got[i]) - static_cast<double>(exact[i]);
    error += difference * difference;
    power += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
  }
  return error / power;
}

class GoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, LogitsMatchTheIndependentEngineInEveryChunking) {
  const Golden& golden = GetParam();
  const std::vector<float> exact =
      LoadFloats(kFolder + golden.logits_file,
                 golden.ids.size() * static_cast<size_t>(golden.n_vocab));
  const double bound = 1.5 * golden.peer_nmse + 1e-6;
  for (Isa isa : AvailableIsas()) {
    const auto at_once =
        Evaluate(golden, isa, static_cast<int64_t>(golden.ids.size()));
    ASSERT_TRUE(at_once.ok()) << at_once.status();
    const double nmse = Nmse(*at_once, exact);
    EXPECT_LE(nmse, bound) << golden.file << ", " << IsaName(isa);
    std::printf("%s %s: nmse %.3g, %.2f of the bound\n", golden.file.c_str(),
                IsaName(isa), nmse, nmse / bound);
    for (int64_t chunk : {1, 7}) {
      const auto chunked = Evaluate(golden, isa, chunk);
      ASSERT_TRUE(chunked.ok()) << chunked.status();
      EXPECT_EQ(std::memcmp(chunked->data(), at_once->data(),
                            at_once->size() * sizeof(float)),
                0)
          << golden.file << ", " << IsaName(isa) << ", chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(LoadGoldens()),
                         [](const auto& golden) {
                           std::string name = golden.param.file;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c)))
                               c = '_';
                           return name;
                         });

}  // namespace
}  // namespace coldstream
