#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/printable.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/json/value.hpp"
#include "tessera/report/document.hpp"
#include "tessera/study/advice.hpp"

namespace tessera::study {
namespace {

using Json = json::Value;

constexpr std::size_t kIndent = 11;  // of continued lines

bool is_host(const MachineAdvice& machine) {
  return machine.origin == Origin::Forecast || machine.origin == Origin::Measured;
}

std::string method_of(const Cost* sparse) {
  return sparse != nullptr && sparse->plan ? to_string(sparse->plan->fwd) : "-";
}

std::string short_name(report::Better better) {
  return better == report::Better::Neither ? "equal" : to_string(better);
}

// Returns the one layer that is shown in all forms, if there is one.
const LayerAdvice* only_layer(const MachineAdvice& machine) {
  return machine.layers.size() == 1 && !machine.layers.front().verdict.empty()
             ? &machine.layers.front()
             : nullptr;
}

// Returns cycles with commas, or milliseconds.
std::string shown(double cost, bool is_host) {
  if (is_host) return fmt::format("{:.4f}", cost * 1e3);
  return fmt::format("{}", fmt::group_digits(std::int64_t(cost)));
}

std::string shown(const Cost* form, bool is_host) {
  return form != nullptr && form->value ? shown(*form->value, is_host) : "no plan";
}

// Returns the dense cost divided by the sparse one, or no value if one of them is missing.
std::optional<double> ratio_of(const LayerAdvice& layer) {
  const Cost* sparse = cheapest_of(layer.blocks);
  if (sparse == nullptr || !layer.dense.value || *sparse->value <= 0) return std::nullopt;
  return *layer.dense.value / *sparse->value;
}

// Returns the relaxation of the best form, and the reasons why there are no blocks or no dense
// plan.
std::string notes_of(const LayerAdvice& layer) {
  if (!layer.fault.empty()) return fmt::format("  cannot be planned: {}\n", printable(layer.fault));
  const Cost* sparse = cheapest_of(layer.blocks);
  if (sparse == nullptr) sparse = &layer.blocks.front();
  std::string text;
  for (const Cost* form : {sparse, &layer.dense})
    if (!form->note.empty()) text += fmt::format("  {}: {}\n", form->name(), form->note);
  return text;
}

std::string figures_of(const LayerAdvice& layer, bool is_host) {
  if (!layer.fault.empty()) return "-";
  const Cost *sparse = cheapest_of(layer.blocks), *best = layer.best();
  const auto ratio = ratio_of(layer);
  const double all = double(layer.outputs) * double(layer.inputs);
  std::string memory = "-";
  if (best != nullptr && !is_host)
    memory = fmt::format("{:.0f}", double(best->tile_memory.value) / 1024);
  return fmt::format("{:<12}{:>8.4f}  {:<7}{:<11}{:>10}{:>10}{:>8}{:>6}{:>6}  {}",
                     fmt::format("{}x{}", layer.outputs, layer.inputs),
                     double(layer.non_zeros) / all, sparse == nullptr ? "-" : sparse->name(),
                     method_of(sparse), shown(sparse, is_host), shown(&layer.dense, is_host),
                     ratio ? fmt::format("{:.2f}x", *ratio) : "-",
                     layer.pays_up_to ? fmt::format("{:.3f}", *layer.pays_up_to) : "-", memory,
                     best == nullptr ? "-" : short_name(layer.better()));
}

// Returns the figures of a layer and its name, which follows on the next line if it is long.
std::string line_of(const LayerAdvice& layer, bool is_host) {
  const std::string figures = figures_of(layer, is_host), name = printable(layer.name);
  constexpr std::size_t kNames = 89;  // the column in which names begin
  if (kNames + name.size() > kColumns)
    return fmt::format("{}\n{:<{}}{}\n", figures, "", kIndent, name);
  return fmt::format("{:<{}}{}\n", figures, kNames, name);
}

std::string forms_text(const LayerAdvice& layer, bool is_host) {
  std::string text = fmt::format("\n{:<10}{:>12}{:>14}{:>14}{:>14}{:>14}\n", "blocks", "stored",
                                 "density", "filled, %", is_host ? "ms" : "cycles", "tiles");
  const double all = double(layer.outputs) * double(layer.inputs);
  std::vector<const Cost*> forms;
  for (const Cost& form : layer.blocks) forms.push_back(&form);
  forms.push_back(&layer.dense);
  for (const Cost* form : forms) {
    const double stored = form->is_dense ? all : double(form->blocks) * double(form->block.area());
    text +=
        fmt::format("{:<10}{:>12}{:>14.4f}{:>14.1f}{:>14}{:>14}\n", form->name(),
                    form->is_dense ? "-" : std::to_string(form->blocks), form->density,
                    stored > 0 ? 100 * double(layer.non_zeros) / stored : 0.0, shown(form, is_host),
                    is_host || !form->value ? "-" : std::to_string(form->tiles));
  }
  return text;
}

std::string table_of(const MachineAdvice& machine) {
  std::string text = fmt::format(
      "\n{}: {}\n", machine.machine,
      is_host(machine) ? "milliseconds, " + to_string(machine.origin) : "modelled cycles");
  if (!machine.note.empty()) text += fmt::format("note       {}\n", machine.note);
  text += fmt::format("{:<12}{:>8}  {:<7}{:<11}{:>10}{:>10}{:>8}{:>6}{:>6}  {:<6} {}\n", "size",
                      "density", "blocks", "method", "sparse", "dense", "ratio", "up to", "KiB",
                      "best", "layer");
  for (const LayerAdvice& layer : machine.layers)
    text += line_of(layer, is_host(machine)) + notes_of(layer);
  if (const LayerAdvice* layer = only_layer(machine)) text += forms_text(*layer, is_host(machine));
  return text;
}

// The layers of a machine that have a sparse and a dense cost, together.
struct Total {
  std::int64_t compared = 0, paying = 0, equal = 0, unplanned = 0;
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
    total.paying += layer.better() == report::Better::Sparse ? 1 : 0;
    total.equal += layer.better() == report::Better::Neither ? 1 : 0;
    total.best += *layer.best()->value;
    total.sparse += *cheapest_of(layer.blocks)->value;
    total.dense += *layer.dense.value;
  }
  return total;
}

std::string verdict_of(const MachineAdvice& machine) {
  if (const LayerAdvice* layer = only_layer(machine))
    return machine.machine + ": " + layer->verdict;
  const Total t = total_of(machine);
  const char* const unit = is_host(machine) ? "ms" : "cycles";
  const std::string how = to_string(machine.origin);
  const auto cost = [&](double value) { return shown(value, is_host(machine)); };
  std::string text;
  if (t.compared == 0)
    text = fmt::format("{}: no layer has both a sparse and a dense plan", machine.machine);
  else if (t.paying == 0)
    text = fmt::format(
        "{}: dense wins in {} of {} layers with {} {}, {}; sparse takes {:.1f}x as many "
        "({})",
        machine.machine, t.compared - t.equal, t.compared, cost(t.dense), unit, t.dense_kernel,
        t.sparse / t.dense, how);
  else
    text = fmt::format(
        "{}: sparse pays in {} of {} layers; each as its best {} {}, {:.1f}x faster than dense "
        "({}, {}) ({})",
        machine.machine, t.paying, t.compared, cost(t.best), unit, t.dense / t.best, cost(t.dense),
        t.dense_kernel, how);
  if (t.equal > 0) text += fmt::format("; {} about equal, keep dense", t.equal);
  if (t.unplanned > 0) text += fmt::format("; {} cannot be planned", t.unplanned);
  return text;
}

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json cost_json(const std::optional<double>& cost, bool is_host) {
  return cost && !is_host ? Json(std::int64_t(*cost)) : number_or_null(cost);
}

Json form_json(const Cost& form, bool is_host) {
  Json json = {{"name", form.name()}, {"density", form.density}};
  if (!form.kernel.empty()) json["kernel"] = form.kernel;
  if (!is_host) {
    json["method"] = form.plan ? Json(to_string(form.plan->fwd)) : Json();
    json["tiles"] = form.value ? Json(form.tiles) : Json();
    json["tile_memory_bytes"] = form.value ? Json(form.tile_memory.value) : Json();
  }
  json[is_host ? "seconds" : "cycles"] = cost_json(form.value, is_host);
  json["note"] = form.note;
  return json;
}

Json layer_json(const LayerAdvice& layer, bool is_host) {
  Json json = {{"name", layer.name}, {"fault", layer.fault}};
  if (!layer.fault.empty()) return json;
  json.update(Json{{"outputs", layer.outputs},
                   {"inputs", layer.inputs},
                   {"non_zeros", layer.non_zeros},
                   {"best", layer.best() == nullptr ? Json() : Json(layer.best()->name())},
                   {"better", to_string(layer.better())},
                   {"sparse_pays", layer.better() == report::Better::Sparse},
                   {"error", layer.error},
                   {"dense_over_sparse", number_or_null(ratio_of(layer))},
                   {"pays_up_to_density", number_or_null(layer.pays_up_to)},
                   {"forms", json::List()}});
  for (const Cost& form : layer.blocks) json["forms"].push_back(form_json(form, is_host));
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
std::vector<Cell> row_of(const LayerAdvice& layer, bool is_host) {
  if (!layer.fault.empty()) return {layer.name, {}, {}, {}, {}, {}, {}, {}, {}, layer.fault};
  const Cost *sparse = cheapest_of(layer.blocks), *best = layer.best();
  const auto cost = [&](const Cost* form) {
    if (form == nullptr || !form->value) return Cell();
    return is_host ? Cell(*form->value) : Cell(std::int64_t(*form->value));
  };
  const double all = double(layer.outputs) * double(layer.inputs);
  std::string note = sparse == nullptr ? layer.blocks.front().note : sparse->note;
  if (!layer.dense.note.empty())
    note += (note.empty() ? "dense: " : "; dense: ") + layer.dense.note;
  return {layer.name,
          fmt::format("{}x{}", layer.outputs, layer.inputs),
          double(layer.non_zeros) / all,
          sparse == nullptr ? Cell() : Cell(sparse->name()),
          cost(sparse),
          cost(&layer.dense),
          cell_of(ratio_of(layer)),
          cell_of(layer.pays_up_to),
          best == nullptr ? Cell() : Cell(to_string(layer.better())),
          note};
}

Table layers_table(const MachineAdvice& machine) {
  const std::string unit = is_host(machine) ? "ms" : "cycles";
  const double scale = is_host(machine) ? 1e3 : 1;
  const std::string how = to_string(machine.origin);
  Table table{.key = machine.machine,
              .title = fmt::format("Layers on {}", machine.machine),
              .note = fmt::format(
                  "Costs are {} of all passes, {}. Ratio: dense / sparse. Up to: density up "
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
                          {.key = "note", .title = "note"}}};
  for (const LayerAdvice& layer : machine.layers)
    table.rows.push_back(row_of(layer, is_host(machine)));
  table.chart = {
      .kind = Chart::Kind::Bars,
      .label = fmt::format("{} of each layer on {}, {}",
                           is_host(machine) ? "Milliseconds" : "Cycles", machine.machine, how),
      .x = "layer",
      .y = {"sparse", "dense"}};
  return table;
}

}  // namespace

Report to_report(const Advice& advice) {
  Report report{.name = "advise",
                .title = "Sparse or dense, layer by layer",
                .subtitle = fmt::format("{}; batch {}, {}, {}", advice.file, advice.asked.size.z,
                                        pass_words(advice), to_string(advice.asked.data_type)),
                .is_complete = advice.is_complete,
                .verdict = verdict_of(advice)};
  for (const MachineAdvice& machine : advice.machines)
    report.tables.push_back(layers_table(machine));
  return report;
}

std::string to_text(const Advice& advice) {
  std::string text =
      fmt::format("{}\nbatch {}, {}, {}\n", printable(advice.file), advice.asked.size.z,
                  pass_words(advice), to_string(advice.asked.data_type));
  if (!advice.left_out.empty())
    text += fmt::format("left out, not matrices of floating-point numbers: {}\n",
                        printable(fmt::format("{}", fmt::join(advice.left_out, ", "))));
  if (!advice.pattern.empty()) text += "\n" + advice.pattern;
  for (const MachineAdvice& machine : advice.machines) text += table_of(machine);
  text +=
      "\nratio: dense / sparse; up to: density up to which a random pattern in these blocks costs "
      "less than dense; KiB: memory of the fullest tile in the best form\n";
  return wrapped(text + "verdict    " + verdict_of(advice) + "\n", kIndent, kIndent);
}

std::string to_json(const Advice& advice) {
  Json machines = json::List();
  for (const MachineAdvice& machine : advice.machines) {
    Json layers = json::List();
    for (const LayerAdvice& layer : machine.layers)
      layers.push_back(layer_json(layer, is_host(machine)));
    machines.push_back({{"machine", machine.machine},
                        {"how", to_string(machine.origin)},
                        {"note", machine.note},
                        {"layers", std::move(layers)}});
  }
  Json passes = json::List();
  for (const Pass pass : passes_of(advice.asked)) passes.push_back(to_string(pass));
  Json json = json::parse_own(report::document_head("advise", advice.is_complete));
  json.update(Json{{"file", advice.file},
                   {"batch_size", advice.asked.size.z},
                   {"data_type", to_string(advice.asked.data_type)},
                   {"passes", std::move(passes)},
                   {"left_out", advice.left_out},
                   {"machines", std::move(machines)},
                   {"verdict", verdict_of(advice)}});
  return json.dump(2) + "\n";
}

}  // namespace tessera::study
