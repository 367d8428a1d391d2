// Forecasts as tables for people and as JSON.
#ifndef COLDSTREAM_TOOLS_PLAN_REPORT_H_
#define COLDSTREAM_TOOLS_PLAN_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/forecast.h"

namespace coldstream {

struct BudgetForecast {
  uint64_t ram_bytes = 0;
  uint64_t vram_bytes = 0;  // 0: the CPU computes
  Status status;            // why there is no forecast
  Forecast forecast;        // if OK
};

struct ModelForecast {
  std::shared_ptr<const Model> model;
  std::string type;  // "q4_k_m"; empty: the file's own
  std::vector<BudgetForecast> budgets;
};

// One column a budget.
std::string PlanText(const ModelForecast& plan);

// One row a type, a block a budget.
std::string TypesText(const std::vector<ModelForecast>& plans);

// Every unit and its home under each budget.
std::string UnitsText(const ModelForecast& plan);

// Bytes, seconds, tokens a second; null where not known.
nlohmann::ordered_json PlanJson(const ModelForecast& plan);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_PLAN_REPORT_H_
