#include "tools/plan_report.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_format.h"
#include "tools/byte_size.h"

namespace coldstream {
namespace {

constexpr int kLabelWidth = 22;
constexpr int kColumnWidth = 16;

using Cell = std::function<std::string(const Forecast&)>;

// A table whose columns are budgets.
class BudgetTable {
 public:
  explicit BudgetTable(const ModelForecast& plan) : plan_(plan) {}

  void Heading(const char* label) {
    absl::StrAppendFormat(&text_, "%s\n", label);
  }
  void Row(const char* label, const Cell& cell) {
    absl::StrAppendFormat(&text_, "%-*s", kLabelWidth, label);
    for (const BudgetForecast& budget : plan_.budgets) {
      absl::StrAppendFormat(&text_, " %*s", kColumnWidth,
                            budget.status.ok() ? cell(budget.forecast) : "-");
    }
    text_ += '\n';
  }
  std::string Take() { return std::move(text_); }

 private:
  const ModelForecast& plan_;
  std::string text_;
};

Cell Bytes(uint64_t (*bytes)(const Forecast&)) {
  return [bytes](const Forecast& forecast) {
    return FormatByteSize(bytes(forecast));
  };
}

using PlanOf = const MemoryPlan& (*)(const Forecast&);

const MemoryPlan& HostPlan(const Forecast& forecast) {
  return forecast.plan.memory;
}
const MemoryPlan& DevicePlan(const Forecast& forecast) {
  return *forecast.plan.vram;
}

// What the memory that is computed from holds.
void AppendContents(PlanOf plan_of, BudgetTable* table) {
  const auto bytes = [=](uint64_t (*part)(const MemoryPlan&)) {
    return [=](const Forecast& f) { return FormatByteSize(part(plan_of(f))); };
  };
  table->Row("  resident weights",
             bytes([](const MemoryPlan& m) { return m.resident_bytes; }));
  table->Row("  slots", [=](const Forecast& f) -> std::string {
    const MemoryPlan& memory = plan_of(f);
    if (memory.slot_count == 0) return "none";
    return absl::StrFormat("%d x %s", memory.slot_count,
                           FormatByteSize(memory.slot_bytes));
  });
  table->Row("  KV cache",
             bytes([](const MemoryPlan& m) { return m.fixed.kv; }));
  table->Row("  activations",
             bytes([](const MemoryPlan& m) { return m.fixed.activations; }));
}

void AppendTotal(PlanOf plan_of, BudgetTable* table) {
  table->Row("  total", [=](const Forecast& f) {
    return FormatByteSize(plan_of(f).total());
  });
  table->Row("  cap", [=](const Forecast& f) {
    return FormatByteSize(plan_of(f).budget);
  });
}

// "12, chosen".
std::string CountCell(int64_t count, SplitSource source) {
  return absl::StrFormat("%d, %s", count, SplitSourceName(source));
}

// What the CPU computes beside a device.
void AppendSplit(BudgetTable* table) {
  table->Heading("computed by the CPU");
  table->Row("  layers", [](const Forecast& f) {
    const SplitChoice& split = f.plan.split;
    return CountCell(split.counts.layers, split.layers);
  });
  const auto ffns = [&](const char* label, Phase phase) {
    table->Row(label, [phase](const Forecast& f) {
      const SplitChoice& split = f.plan.split;
      return CountCell(split.counts.ffn_of(phase), split.ffn_source(phase));
    });
  };
  ffns("  FFNs, generation", Phase::kDecode);
  ffns("  FFNs, prompt", Phase::kPrefill);
}

void AppendMemory(bool device, BudgetTable* table) {
  table->Heading("memory");
  if (device) {
    table->Row("  weights", Bytes([](const Forecast& f) {
                 return f.plan.memory.resident_bytes;
               }));
    table->Row("  staging", Bytes([](const Forecast& f) {
                 return f.plan.memory.fixed.staging;
               }));
    table->Row("  activations", Bytes([](const Forecast& f) {
                 return f.plan.memory.fixed.activations;
               }));
    table->Row("  KV cache",
               Bytes([](const Forecast& f) { return f.plan.memory.fixed.kv; }));
  } else {
    AppendContents(HostPlan, table);
  }
  table->Row("  tokenizer", Bytes([](const Forecast& f) {
               return f.plan.memory.fixed.tokenizer;
             }));
  table->Row("  process", Bytes([](const Forecast& f) {
               return f.plan.memory.fixed.process;
             }));
  AppendTotal(HostPlan, table);
  if (!device) return;
  table->Heading("device memory");
  AppendContents(DevicePlan, table);
  AppendTotal(DevicePlan, table);
}

std::string Seconds(double seconds) {
  return seconds < 1 ? absl::StrFormat("%.1f ms", seconds * 1e3)
                     : absl::StrFormat("%.2f s", seconds);
}

void AppendPass(const char* heading, bool device,
                const PassForecast& (*pass_of)(const Forecast&),
                BudgetTable* table) {
  table->Heading(heading);
  const auto row = [&](const char* label,
                       const std::function<std::string(
                           const PassForecast&, const PassPrediction&)>& cell) {
    table->Row(label, [&](const Forecast& f) -> std::string {
      const PassForecast& pass = pass_of(f);
      return pass.time ? cell(pass, *pass.time) : "?";
    });
  };
  if (device) {
    table->Row("  uploaded", [pass_of](const Forecast& f) {
      return FormatByteSize(pass_of(f).share.upload_bytes);
    });
    table->Row("  by the CPU", [pass_of](const Forecast& f) {
      return FormatByteSize(pass_of(f).share.cpu_bytes);
    });
  }
  row("  disk busy", [](const PassForecast&, const PassPrediction& time) {
    return Seconds(time.disk_seconds);
  });
  if (device) {
    row("  upload busy", [](const PassForecast&, const PassPrediction& time) {
      return Seconds(time.upload_seconds);
    });
  }
  row("  compute busy", [](const PassForecast&, const PassPrediction& time) {
    return Seconds(time.compute_seconds);
  });
  if (device) {
    row("  of it the CPU", [](const PassForecast&, const PassPrediction& time) {
      return Seconds(time.cpu_seconds);
    });
  }
  row("  predicted", [](const PassForecast&, const PassPrediction& time) {
    return Seconds(time.seconds);
  });
  row("  limited by", [](const PassForecast&, const PassPrediction& time) {
    return std::string(LinkName(time.binding()));
  });
  row("  bound, tok/s",
      [](const PassForecast& pass, const PassPrediction& time) {
        return absl::StrFormat(
            "%.2f", static_cast<double>(pass.tokens) / time.bound_seconds());
      });
  row("  predicted, tok/s",
      [](const PassForecast& pass, const PassPrediction&) {
        return absl::StrFormat("%.2f", *pass.tokens_per_second());
      });
}

// Who computes a unit: "cpu" or "device".
const char* SideName(const EnginePlan& plan, size_t unit, Phase phase) {
  const bool cpu =
      !plan.vram || plan.placement.OnCpu(static_cast<int>(unit), phase);
  return cpu ? "cpu" : "device";
}

// The pass as a strip, a letter a unit: what HomesLegend says.
char HomeLetter(const EnginePlan& plan, size_t unit) {
  const auto index = static_cast<int>(unit);
  if (plan.placement.AlwaysOnCpu(index)) return 'c';
  if (plan.placement.OnCpu(index, Phase::kDecode)) return 'g';
  if (plan.placement.OnCpu(index, Phase::kPrefill)) return 'p';
  switch (HomeOf(plan, unit)) {
    case Home::kVram:
      return '#';
    case Home::kRam:
      return plan.vram ? '+' : '#';
    case Home::kDisk:
      break;
  }
  return '.';
}

std::string HomesOf(const EnginePlan& plan) {
  std::string strip;
  for (size_t unit = 0; unit < plan.memory.resident.size(); ++unit)
    strip += HomeLetter(plan, unit);
  return strip;
}

const char* HomesLegend(bool device) {
  return device ? "\nhomes, unit by unit (# in device memory, + in RAM, . on "
                  "disk; "
                  "in RAM and computed by the CPU: c always, g in generation, "
                  "p in "
                  "prompts)\n"
                : "\nhomes, unit by unit (# in memory, . on disk)\n";
}

// "vram", "ram", "ram, cpu"; by phase where the sides differ: "ram, cpu/gpu".
std::string HomeAndSide(const EnginePlan& plan, size_t unit) {
  const auto index = static_cast<int>(unit);
  const char* side = "";
  if (plan.placement.AlwaysOnCpu(index)) {
    side = ", cpu";
  } else if (plan.placement.OnCpu(index, Phase::kDecode)) {
    side = ", cpu/gpu";
  } else if (plan.placement.OnCpu(index, Phase::kPrefill)) {
    side = ", gpu/cpu";
  }
  return absl::StrFormat("%s%s", HomeName(HomeOf(plan, unit)), side);
}

bool ForDevice(const ModelForecast& plan) {
  return plan.budgets.front().vram_bytes > 0;
}

std::string RamName(const BudgetForecast& budget) {
  return absl::StrFormat("--ram %s", FormatByteSize(budget.ram_bytes));
}
std::string VramName(const BudgetForecast& budget) {
  return absl::StrFormat("--vram %s", FormatByteSize(budget.vram_bytes));
}

std::string BudgetName(const BudgetForecast& budget) {
  if (budget.vram_bytes == 0) return RamName(budget);
  return absl::StrFormat("%s %s", VramName(budget), RamName(budget));
}

// The budgets over the columns of a table, a line for each memory.
std::string ColumnHeads(const ModelForecast& plan, const std::string& label) {
  const auto line = [&](const std::string& first, const auto& name) {
    std::string text = first;
    for (const BudgetForecast& budget : plan.budgets)
      absl::StrAppendFormat(&text, " %*s", kColumnWidth, name(budget));
    return text + "\n";
  };
  std::string text;
  if (ForDevice(plan)) text = line(std::string(label.size(), ' '), VramName);
  return text + line(label, RamName);
}

nlohmann::ordered_json PassJson(const PassForecast& pass) {
  nlohmann::ordered_json json;
  json["tokens"] = pass.tokens;
  json["upload_bytes"] = pass.share.upload_bytes;
  json["cpu_bytes"] = pass.share.cpu_bytes;
  const bool known = pass.time.has_value();
  const auto put = [&](const char* key, double value) {
    json[key] = nullptr;
    if (known) json[key] = value;
  };
  const PassPrediction time = pass.time.value_or(PassPrediction{});
  put("seconds", time.seconds);
  put("disk_seconds", time.disk_seconds);
  put("upload_seconds", time.upload_seconds);
  put("compute_seconds", time.compute_seconds);
  put("cpu_seconds", time.cpu_seconds);
  put("bound_seconds", time.bound_seconds());
  put("tokens_per_second", pass.tokens_per_second().value_or(0));
  json["binding"] = nullptr;
  if (known) json["binding"] = LinkName(time.binding());
  return json;
}

nlohmann::ordered_json BudgetJson(const Model& model,
                                  const BudgetForecast& budget) {
  nlohmann::ordered_json json;
  json["ram_bytes"] = budget.ram_bytes;
  json["vram_bytes"] = nullptr;
  if (budget.vram_bytes > 0) json["vram_bytes"] = budget.vram_bytes;
  if (!budget.status.ok()) {
    json["error"] = MessageOf(budget.status);
    return json;
  }
  const Forecast& forecast = budget.forecast;
  const MemoryPlan& memory = forecast.plan.memory;
  json["planned_bytes"] = memory.total();
  json["resident_bytes"] = memory.resident_bytes;
  json["slots"] = memory.slot_count;
  json["slot_bytes"] = memory.slot_bytes;
  json["kv_bytes"] = memory.fixed.kv;
  json["activation_bytes"] = memory.fixed.activations;
  json["tokenizer_bytes"] = memory.fixed.tokenizer;
  json["process_bytes"] = memory.fixed.process;
  json["disk_bytes_per_pass"] = forecast.disk_bytes;
  json["ram_bytes_per_pass"] = forecast.ram_bytes;
  json["first_pass_read_bytes"] = memory.first_pass_read_bytes;
  json["vram"] = nullptr;
  if (forecast.plan.vram) {
    const MemoryPlan& vram = *forecast.plan.vram;
    json["vram"] = {{"planned_bytes", vram.total()},
                    {"resident_bytes", vram.resident_bytes},
                    {"slots", vram.slot_count},
                    {"slot_bytes", vram.slot_bytes},
                    {"kv_bytes", vram.fixed.kv},
                    {"activation_bytes", vram.fixed.activations},
                    {"staging_bytes", memory.fixed.staging},
                    {"bytes_per_pass", forecast.vram_bytes},
                    {"upload_bytes_per_pass", vram.pass_read_bytes}};
  }
  json["split"] = SplitJson(SummarizeSplit(model, forecast.plan));
  json["decode"] = PassJson(forecast.decode);
  json["prefill"] = PassJson(forecast.prefill);
  json["next"] = nullptr;
  if (budget.forecast.next) json["next"] = NextSpendText(*budget.forecast.next);
  json["units"] = nlohmann::ordered_json::array();
  const auto& units = model.weights().units;
  for (size_t i = 0; i < units.size(); ++i) {
    const auto side = [&](Phase phase) {
      return SideName(forecast.plan, i, phase);
    };
    json["units"].push_back({{"name", units[i].name},
                             {"bytes", units[i].weight_bytes()},
                             {"home", HomeName(HomeOf(forecast.plan, i))},
                             {"decode", side(Phase::kDecode)},
                             {"prefill", side(Phase::kPrefill)}});
  }
  return json;
}

std::string Rate(const PassForecast& pass) {
  const std::optional<double> rate = pass.tokens_per_second();
  return rate ? absl::StrFormat("%.2f", *rate) : "?";
}

std::string LimitOf(const PassForecast& pass) {
  return pass.time ? LinkName(pass.time->binding()) : "?";
}

// Of TypesText.
std::string TypeRow(const ModelForecast& plan, const BudgetForecast& budget) {
  const uint64_t weights = plan.model->weights().weight_bytes();
  std::string text =
      absl::StrFormat("%-8s %11s", plan.type, FormatByteSize(weights));
  if (!budget.status.ok()) {
    absl::StrAppendFormat(&text, "  %s\n", MessageOf(budget.status));
    return text;
  }
  const Forecast& forecast = budget.forecast;
  const auto percent = [&](uint64_t bytes) {
    return 100.0 * static_cast<double>(bytes) / static_cast<double>(weights);
  };
  if (ForDevice(plan))
    absl::StrAppendFormat(&text, " %8.1f%% %8.1f%%",
                          percent(forecast.vram_bytes),
                          percent(forecast.decode.share.cpu_bytes));
  absl::StrAppendFormat(
      &text, " %8.1f%% %12s %13s %13s  %s\n", percent(forecast.ram_bytes),
      FormatByteSize(forecast.disk_bytes), Rate(forecast.prefill),
      Rate(forecast.decode), LimitOf(forecast.decode));
  return text;
}

}  // namespace

std::string PlanText(const ModelForecast& plan) {
  const Model& model = *plan.model;
  std::string text = absl::StrFormat(
      "%s%s%s: %s of weights in %d units, %d layers\n\n", model.config().name,
      plan.type.empty() ? "" : ", ", plan.type,
      FormatByteSize(model.weights().weight_bytes()),
      model.weights().units.size(), model.config().layer_count());
  const bool device = ForDevice(plan);
  text += ColumnHeads(plan, std::string(kLabelWidth, ' '));
  BudgetTable table(plan);
  AppendMemory(device, &table);
  table.Heading("a pass");
  table.Row("  from disk",
            Bytes([](const Forecast& f) { return f.disk_bytes; }));
  table.Row("  from RAM", Bytes([](const Forecast& f) { return f.ram_bytes; }));
  if (device) {
    table.Row("  from device memory",
              Bytes([](const Forecast& f) { return f.vram_bytes; }));
    AppendSplit(&table);
  }
  AppendPass(
      "generation, a token", device,
      [](const Forecast& f) -> const PassForecast& { return f.decode; },
      &table);
  AppendPass(
      "prompt, a batch", device,
      [](const Forecast& f) -> const PassForecast& { return f.prefill; },
      &table);
  text += table.Take();
  text += HomesLegend(device);
  for (const BudgetForecast& budget : plan.budgets) {
    if (!budget.status.ok()) {
      absl::StrAppendFormat(&text, "%s: %s\n", BudgetName(budget),
                            MessageOf(budget.status));
      continue;
    }
    absl::StrAppendFormat(&text, "%s\n  %s\n", BudgetName(budget),
                          HomesOf(budget.forecast.plan));
  }
  for (const BudgetForecast& budget : plan.budgets) {
    if (!budget.forecast.next) continue;
    absl::StrAppendFormat(&text, "%s: next best: %s\n", BudgetName(budget),
                          NextSpendText(*budget.forecast.next));
  }
  return text;
}

std::string UnitsText(const ModelForecast& plan) {
  std::string text = "\n";
  text += ColumnHeads(plan, absl::StrFormat("%-26s %12s", "unit", "bytes"));
  const auto& units = plan.model->weights().units;
  for (size_t i = 0; i < units.size(); ++i) {
    absl::StrAppendFormat(&text, "%-26s %12s", units[i].name,
                          FormatByteSize(units[i].weight_bytes()));
    for (const BudgetForecast& budget : plan.budgets) {
      std::string home = "-";
      if (budget.status.ok()) home = HomeAndSide(budget.forecast.plan, i);
      absl::StrAppendFormat(&text, " %*s", kColumnWidth, home);
    }
    text += '\n';
  }
  if (ForDevice(plan))
    text += "cpu: who computes it; cpu/gpu: in generation / in prompts\n";
  return text;
}

std::string TypesText(const std::vector<ModelForecast>& plans) {
  const bool device = ForDevice(plans.front());
  std::string text;
  for (size_t i = 0; i < plans.front().budgets.size(); ++i) {
    absl::StrAppendFormat(&text, "%s%s, %s\n%-8s %11s", i == 0 ? "" : "\n",
                          plans.front().model->config().name,
                          BudgetName(plans.front().budgets[i]), "type",
                          "weights");
    if (device) absl::StrAppendFormat(&text, " %9s %9s", "in VRAM", "by CPU");
    absl::StrAppendFormat(&text, " %9s %12s %13s %13s  %s\n", "in RAM",
                          "disk/pass", "prompt tok/s", "gen. tok/s",
                          "limited by");
    for (const ModelForecast& plan : plans)
      text += TypeRow(plan, plan.budgets[i]);
  }
  return text;
}

nlohmann::ordered_json PlanJson(const ModelForecast& plan) {
  const Model& model = *plan.model;
  nlohmann::ordered_json json;
  json["model"] = model.config().name;
  json["type"] = nullptr;
  if (!plan.type.empty()) json["type"] = plan.type;
  json["weights_bytes"] = model.weights().weight_bytes();
  json["layers"] = model.config().layer_count();
  json["budgets"] = nlohmann::ordered_json::array();
  for (const BudgetForecast& budget : plan.budgets)
    json["budgets"].push_back(BudgetJson(model, budget));
  return json;
}

}  // namespace coldstream
