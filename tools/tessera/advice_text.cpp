#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/printable.hpp"
#include "tessera/tools/internal/manual.hpp"
#include "tessera/tools/tessera/advice.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kIndent = 11;  // of continued lines

// Returns cycles with commas, or milliseconds.
std::string shown(double cost, bool is_host) {
  if (is_host) return fmt::format("{:.4f}", cost * 1e3);
  return fmt::format("{}", fmt::group_digits(std::int64_t(cost)));
}

std::string shown(const StoredForm* form, bool is_host) {
  return form != nullptr && form->cost ? shown(*form->cost, is_host) : "no plan";
}

// Returns the dense cost divided by the sparse one, or no value if one of them is missing.
std::optional<double> ratio_of(const LayerAdvice& layer) {
  const StoredForm* sparse = layer.best_blocks();
  if (sparse == nullptr || !layer.dense.cost || *sparse->cost <= 0) return std::nullopt;
  return *layer.dense.cost / *sparse->cost;
}

// Returns the relaxation of the best form, and the reasons why there are no blocks or no dense
// plan.
std::string notes_of(const LayerAdvice& layer) {
  if (!layer.fault.empty()) return fmt::format("  cannot be planned: {}\n", printable(layer.fault));
  const StoredForm* sparse = layer.best_blocks();
  if (sparse == nullptr) sparse = &layer.blocks.front();
  std::string text;
  for (const StoredForm* form : {sparse, &layer.dense})
    if (!form->note.empty()) text += fmt::format("  {}: {}\n", form->name, form->note);
  return text;
}

std::string figures_of(const LayerAdvice& layer, bool is_host) {
  if (!layer.fault.empty()) return "-";
  const StoredForm *sparse = layer.best_blocks(), *best = layer.best();
  const auto ratio = ratio_of(layer);
  const double all = double(layer.outputs) * double(layer.inputs);
  std::string memory = "-";
  if (best != nullptr && !is_host)
    memory = fmt::format("{:.0f}", double(best->tile_memory.value) / 1024);
  return fmt::format("{:<12}{:>8.4f}  {:<7}{:<11}{:>10}{:>10}{:>8}{:>6}{:>6}  {}",
                     fmt::format("{}x{}", layer.outputs, layer.inputs),
                     double(layer.non_zeros) / all, sparse == nullptr ? "-" : sparse->name,
                     sparse == nullptr || is_host ? "-" : sparse->method, shown(sparse, is_host),
                     shown(&layer.dense, is_host), ratio ? fmt::format("{:.2f}x", *ratio) : "-",
                     layer.pays_up_to ? fmt::format("{:.3f}", *layer.pays_up_to) : "-", memory,
                     best == nullptr ? "-" : (layer.sparse_pays() ? "sparse" : "dense"));
}

// Returns the figures of a layer and its name, which follows on the next line if it is long.
std::string line_of(const LayerAdvice& layer, bool is_host) {
  const std::string figures = figures_of(layer, is_host), name = printable(layer.name);
  constexpr std::size_t kNames = 89;  // the column in which names begin
  if (kNames + name.size() > internal::kColumns)
    return fmt::format("{}\n{:<{}}{}\n", figures, "", kIndent, name);
  return fmt::format("{:<{}}{}\n", figures, kNames, name);
}

std::string table_of(const MachineAdvice& machine) {
  std::string text = fmt::format("\n{}: {}\n", machine.machine,
                                 machine.is_host ? "milliseconds, forecast" : "modelled cycles");
  if (!machine.note.empty()) text += fmt::format("note       {}\n", machine.note);
  text += fmt::format("{:<12}{:>8}  {:<7}{:<11}{:>10}{:>10}{:>8}{:>6}{:>6}  {:<6} {}\n", "size",
                      "density", "blocks", "method", "sparse", "dense", "ratio", "up to", "KiB",
                      "best", "layer");
  for (const LayerAdvice& layer : machine.layers)
    text += line_of(layer, machine.is_host) + notes_of(layer);
  return text;
}

// The layers of a machine that have a sparse and a dense cost, together.
struct Total {
  std::int64_t compared = 0, paying = 0, unplanned = 0;
  std::string dense_kernel;
  double best = 0, sparse = 0, dense = 0;
};

Total total_of(const MachineAdvice& machine) {
  Total total;
  for (const LayerAdvice& layer : machine.layers) {
    total.unplanned += layer.best() == nullptr ? 1 : 0;
    if (!ratio_of(layer)) continue;
    ++total.compared;
    total.dense_kernel = layer.dense.kernel;
    total.paying += layer.sparse_pays() ? 1 : 0;
    total.best += *layer.best()->cost;
    total.sparse += *layer.best_blocks()->cost;
    total.dense += *layer.dense.cost;
  }
  return total;
}

std::string verdict_of(const MachineAdvice& machine) {
  const Total t = total_of(machine);
  const char* const unit = machine.is_host ? "ms" : "cycles";
  const char* const how = machine.is_host ? "forecast" : "modelled";
  const auto cost = [&](double value) { return shown(value, machine.is_host); };
  std::string text;
  if (t.compared == 0)
    text = fmt::format("{}: no layer has both a sparse and a dense plan", machine.machine);
  else if (t.paying == 0)
    text = fmt::format(
        "{}: dense wins in {} of {} layers with {} {}, {}; sparse takes {:.1f}x as many "
        "({})",
        machine.machine, t.compared, t.compared, cost(t.dense), unit, t.dense_kernel,
        t.sparse / t.dense, how);
  else
    text = fmt::format(
        "{}: sparse pays in {} of {} layers; each as its best {} {}, {:.1f}x faster than dense "
        "({}, {}) ({})",
        machine.machine, t.paying, t.compared, cost(t.best), unit, t.dense / t.best, cost(t.dense),
        t.dense_kernel, how);
  if (t.unplanned > 0) text += fmt::format("; {} cannot be planned", t.unplanned);
  return text;
}

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json cost_json(const std::optional<double>& cost, bool is_host) {
  return cost && !is_host ? Json(std::int64_t(*cost)) : number_or_null(cost);
}

Json form_json(const StoredForm& form, bool is_host) {
  Json json = {{"name", form.name}, {"density", form.density}};
  if (!form.kernel.empty()) json["kernel"] = form.kernel;
  if (!is_host) {
    json["method"] = form.method.empty() ? Json() : Json(form.method);
    json["tile_memory_bytes"] = form.cost ? Json(form.tile_memory.value) : Json();
  }
  json[is_host ? "seconds" : "cycles"] = cost_json(form.cost, is_host);
  json["note"] = form.note;
  return json;
}

Json layer_json(const LayerAdvice& layer, bool is_host) {
  Json json = {{"name", layer.name}, {"fault", layer.fault}};
  if (!layer.fault.empty()) return json;
  json.update(Json{{"outputs", layer.outputs},
                   {"inputs", layer.inputs},
                   {"non_zeros", layer.non_zeros},
                   {"best", layer.best() == nullptr ? Json() : Json(layer.best()->name)},
                   {"sparse_pays", layer.sparse_pays()},
                   {"dense_over_sparse", number_or_null(ratio_of(layer))},
                   {"pays_up_to_density", number_or_null(layer.pays_up_to)},
                   {"forms", Json::array()}});
  for (const StoredForm& form : layer.blocks) json["forms"].push_back(form_json(form, is_host));
  json["forms"].push_back(form_json(layer.dense, is_host));
  return json;
}

std::string verdict_of(const Advice& advice) {
  std::string text;
  for (const MachineAdvice& machine : advice.machines)
    text += (text.empty() ? "" : "; ") + verdict_of(machine);
  return text;
}

std::string pass_words(const Advice& advice) {
  std::string passes;
  for (const Pass pass : passes_of(advice.asked))
    passes += (passes.empty() ? "" : " + ") + to_string(pass);
  return passes;
}

// Returns the figures of one layer as a row of layers_table.
std::vector<internal::StudyCell> row_of(const LayerAdvice& layer, bool is_host) {
  using internal::cell_of;
  using Cell = internal::StudyCell;
  if (!layer.fault.empty()) return {layer.name, {}, {}, {}, {}, {}, {}, {}, {}, layer.fault};
  const StoredForm *sparse = layer.best_blocks(), *best = layer.best();
  const auto cost = [&](const StoredForm* form) {
    if (form == nullptr || !form->cost) return Cell();
    return is_host ? Cell(*form->cost) : Cell(std::int64_t(*form->cost));
  };
  const double all = double(layer.outputs) * double(layer.inputs);
  std::string note = sparse == nullptr ? layer.blocks.front().note : sparse->note;
  if (!layer.dense.note.empty())
    note += (note.empty() ? "dense: " : "; dense: ") + layer.dense.note;
  return {layer.name,
          fmt::format("{}x{}", layer.outputs, layer.inputs),
          double(layer.non_zeros) / all,
          sparse == nullptr ? Cell() : Cell(sparse->name),
          cost(sparse),
          cost(&layer.dense),
          cell_of(ratio_of(layer)),
          cell_of(layer.pays_up_to),
          best == nullptr ? Cell() : Cell(layer.sparse_pays() ? "sparse" : "dense"),
          note};
}

internal::StudyTable layers_table(const MachineAdvice& machine) {
  const std::string unit = machine.is_host ? "ms" : "cycles";
  const double scale = machine.is_host ? 1e3 : 1;
  const std::string how = machine.is_host ? "forecast" : "modelled";
  internal::StudyTable table{
      .key = machine.machine,
      .title = fmt::format("Layers on {}", machine.machine),
      .note =
          fmt::format("Costs are {} of all passes, {}. Ratio: dense / sparse. Up to: density up "
                      "to which a random pattern in these blocks costs less than dense.{}",
                      unit, how, machine.note.empty() ? "" : " Note: " + machine.note + "."),
      .columns = {{.key = "layer", .title = "layer"},
                  {.key = "size", .title = "size"},
                  {.key = "density", .title = "density"},
                  {.key = "blocks", .title = "blocks"},
                  {.key = "sparse", .title = "sparse, " + unit, .scale = scale},
                  {.key = "dense", .title = "dense, " + unit, .scale = scale},
                  {.key = "ratio", .title = "ratio"},
                  {.key = "up_to", .title = "up to"},
                  {.key = "best", .title = "best"},
                  {.key = "note", .title = "note"}},
      .rows = {}};
  for (const LayerAdvice& layer : machine.layers)
    table.rows.push_back(row_of(layer, machine.is_host));
  table.chart = {
      .kind = internal::StudyChart::Kind::Bars,
      .label = fmt::format("{} of each layer on {}, {}",
                           machine.is_host ? "Milliseconds" : "Cycles", machine.machine, how),
      .x = "layer",
      .y = {"sparse", "dense"},
      .series = {}};
  return table;
}

}  // namespace

internal::Study to_study(const Advice& advice) {
  internal::Study study{
      .name = "advise",
      .title = "Sparse or dense, layer by layer",
      .subtitle = fmt::format("{}; batch {}, {}, {}", advice.file, advice.asked.size.z,
                              pass_words(advice), to_string(advice.asked.data_type)),
      .is_complete = advice.is_complete,
      .facts = {},
      .tables = {},
      .verdict = verdict_of(advice)};
  for (const MachineAdvice& machine : advice.machines)
    study.tables.push_back(layers_table(machine));
  return study;
}

std::string to_text(const Advice& advice) {
  std::string text =
      fmt::format("{}\nbatch {}, {}, {}\n", printable(advice.file), advice.asked.size.z,
                  pass_words(advice), to_string(advice.asked.data_type));
  if (!advice.left_out.empty())
    text += fmt::format("left out, not matrices of floating-point numbers: {}\n",
                        printable(fmt::format("{}", fmt::join(advice.left_out, ", "))));
  for (const MachineAdvice& machine : advice.machines) text += table_of(machine);
  text +=
      "\nratio: dense / sparse; up to: density up to which a random pattern in these blocks costs "
      "less than dense; KiB: memory of the fullest tile in the best form\n";
  return internal::wrapped(text + "verdict    " + verdict_of(advice) + "\n", kIndent, kIndent);
}

std::string to_json(const Advice& advice) {
  Json machines = Json::array();
  for (const MachineAdvice& machine : advice.machines) {
    Json layers = Json::array();
    for (const LayerAdvice& layer : machine.layers)
      layers.push_back(layer_json(layer, machine.is_host));
    machines.push_back({{"machine", machine.machine},
                        {"how", machine.is_host ? "forecast" : "modelled"},
                        {"note", machine.note},
                        {"layers", std::move(layers)}});
  }
  Json passes = Json::array();
  for (const Pass pass : passes_of(advice.asked)) passes.push_back(to_string(pass));
  return Json{{"schema_version", 1},
              {"study", "advise"},
              {"status", advice.is_complete ? "complete" : "partial"},
              {"file", advice.file},
              {"batch_size", advice.asked.size.z},
              {"data_type", to_string(advice.asked.data_type)},
              {"passes", std::move(passes)},
              {"left_out", advice.left_out},
              {"machines", std::move(machines)},
              {"verdict", verdict_of(advice)}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace tessera::tools
