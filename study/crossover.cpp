#include "tessera/study/crossover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tessera/base/wrapped.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/study/break_even.hpp"
#include "tessera/study/static_model.hpp"

namespace tessera::study {
namespace {

// The points of the curve, close enough for a line on a logarithmic axis.
constexpr double kDensities[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1};

// Measured densities are multiples of 1/32.
constexpr std::int64_t kMeasuredSteps = 32;

const char* how(bool is_measured) { return is_measured ? "measured" : "modelled"; }

std::string bound_note(double density) {
  return fmt::format(
      "static: at least {:.3f}; larger patterns, of more than {} blocks, were not tried", density,
      kMostStaticBlocks);
}

std::string time_text(const Cost& form) {
  return fmt::format("{:.4f} ms +-{:.1f} %", *form.value * 1e3, 100 * form.spread);
}

}  // namespace

Crossover::Crossover(CrossoverRequest request, const Problem& layer, Target target)
    : request_(std::move(request)),
      target_(std::move(target)),
      model_(target_.seen(layer, 1.0 / kMeasuredSteps)),
      fixed_(target_.fixed(layer)),
      dense_(model_->dense()) {}

const BlockShape* Crossover::next() const {
  return done() < std::ssize(request_.blocks) ? &request_.blocks[std::size_t(done())] : nullptr;
}

void Crossover::add() {
  const BlockShape block = *next();
  const double dense = dense_.value.value_or(std::numeric_limits<double>::max());
  Crossing crossing =
      is_measured() ? measured_crossing(block, dense) : planned_crossing(block, dense);
  if (request_.pattern)
    crossing.pattern = model_->sparse({.block = block, .pattern = &*request_.pattern});
  if (fixed_) add_fixed(block, dense, crossing);
  if (target_.is_stopped()) return;
  crossing.block = block;
  crossings_.push_back(std::move(crossing));
}

bool Crossover::has_cost() const {
  return dense_.value || std::ranges::any_of(crossings_, [](const Crossing& c) {
           return c.there.value.has_value();
         });
}

Crossover::Crossing Crossover::measured_crossing(BlockShape block, double dense) {
  Crossing crossing;
  DensityGrid grid{.steps = kMeasuredSteps, .halves = true, .is_stopped = target_.is_stopped};
  grid.seen = [&](double density, const Cost& cost) { crossing.curve.emplace_back(density, cost); };
  crossing.density = break_even(*model_, {.block = block}, dense, grid);
  for (const auto& [density, cost] : crossing.curve)
    if (density == crossing.density) crossing.there = cost;
  std::ranges::sort(crossing.curve, {}, [](const auto& point) { return point.first; });
  return crossing;
}

Crossover::Crossing Crossover::planned_crossing(BlockShape block, double dense) {
  Crossing crossing;
  const Form form{.block = block};
  const auto cost_at = [&](double density) {
    return model_->cheapest({.block = block, .density = density});
  };
  crossing.density = break_even(*model_, form, dense, {.is_stopped = target_.is_stopped});
  if (crossing.density > 0) {
    crossing.there = cost_at(crossing.density);
  } else if (Cost lowest = model_->sparse({.block = block, .density = kDensities[0]});
             !lowest.value) {
    crossing.there.note = std::move(lowest.note);
  }
  if (request_.with_curve)
    for (const double density : kDensities) crossing.curve.emplace_back(density, cost_at(density));
  return crossing;
}

// Adds the crossover of patterns that stay. They cost less than those that may change, so the
// search begins at the crossover of these, or between two points of the curve.
void Crossover::add_fixed(BlockShape block, double dense, Crossing& crossing) {
  if (request_.pattern)
    crossing.fixed_pattern = fixed_->sparse({.block = block, .pattern = &*request_.pattern});
  if (!codelets::has_static_kernel(block)) return;
  DensityGrid grid{.guess = crossing.density, .is_stopped = target_.is_stopped};
  for (const double density : kDensities) {
    if (!request_.with_curve || target_.is_stopped()) break;
    crossing.fixed_curve.emplace_back(density,
                                      fixed_->sparse({.block = block, .density = density}));
    grid.known.emplace_back(density, crossing.fixed_curve.back().second.value);
  }
  crossing.fixed_density = break_even(*fixed_, {.block = block}, dense, grid);
  crossing.fixed_is_bound = ends_at_limit(block, *crossing.fixed_density);
}

// Returns whether no static plan was made beyond the density found.
bool Crossover::ends_at_limit(BlockShape block, double found) const {
  const double most = double(kMostStaticBlocks) / places_of(model_->layer(), block);
  return most < 1 && found + 0.001 >= most;
}

bool Crossover::has_bound() const {
  return std::ranges::any_of(crossings_, &Crossing::fixed_is_bound);
}

Report Crossover::report() const {
  const Problem& problem = model_->layer();

  Report report{.name = "crossover",
                .title = "Sparse against dense",
                .subtitle = layer_words(problem) + "; " + target_.words(),
                .is_complete = crossings_.size() == request_.blocks.size(),
                .facts = {{"layer", layer_words(problem)},
                          {"machine", target_.name},
                          {"how", how(is_measured())},
                          {is_measured() ? "dense_seconds" : "dense_cycles", cost_cell(dense_)},
                          {"dense", is_measured() || !dense_.value ? dense_.kernel
                                                                   : "planned, " + dense_.kernel}},
                .tables = {blocks_table(), curve_table()},
                .verdict = verdict()};
  return report;
}

std::string Crossover::text() const {
  const Report study = report();
  std::string text = fmt::format("dense: no plan, {}\n", dense_.note);
  if (dense_.value)
    text = is_measured()
               ? fmt::format("dense: {} ({}, measured)\n", time_text(dense_), dense_.kernel)
               : fmt::format("dense: {} cycles (planned, {})\n", std::int64_t(*dense_.value),
                             dense_.kernel);
  text += table_text(study.tables.front());
  text += is_measured()
              ? "densities in steps of 1/32; times are measured, +- half the range of the "
                "middle half\n"
              : "densities in steps of 0.001; cycles are modelled; static patterns are known "
                "when they are planned, and stay\n";
  return wrapped(text + "verdict    " + study.verdict + "\n", /*indented=*/4,
                 /*flush=*/11);
}

Cell Crossover::cost_cell(const Cost& form) const {
  if (!form.value) return {};
  return is_measured() ? Cell(*form.value) : Cell(std::int64_t(*form.value));
}

Column Crossover::cost_column(const std::string& prefix, const std::string& title,
                              int width) const {
  if (is_measured())
    return {.key = prefix + "seconds", .title = title, .decimals = 4, .scale = 1e3, .width = width};
  return {.key = prefix + "cycles", .title = title, .width = width};
}

Table Crossover::blocks_table() const {
  Table table{
      .key = "blocks",
      .title = "The density up to which sparse costs less",
      .note = dense_note(),
      .columns = {
          {.key = "block", .title = "block", .width = 10},
          {.key = "crossover_density", .title = "sparse wins up to", .decimals = 3, .width = 20},
          cost_column("", is_measured() ? "ms there" : "cycles there", 16)}};
  if (has_bound())
    table.columns.push_back({.key = "static_crossover_is", .title = "bound", .width = 10});
  if (!is_measured())
    table.columns.push_back(
        {.key = "static_crossover_density", .title = "static up to", .decimals = 3, .width = 13});
  if (is_measured())
    table.columns.push_back(
        {.key = "spread", .title = "+-, %", .decimals = 1, .scale = 100, .width = 8});
  if (request_.pattern) {
    table.columns.push_back(
        {.key = "pattern_density", .title = "density here", .decimals = 4, .width = 14});
    table.columns.push_back(cost_column("pattern_", is_measured() ? "ms here" : "cycles here", 13));
    if (!is_measured()) table.columns.push_back(cost_column("static_pattern_", "static here", 13));
  }
  table.columns.push_back({.key = "note", .title = "note", .width = 0});
  for (const Crossing& c : crossings_) table.rows.push_back(row_of(c));
  return table;
}

std::vector<Cell> Crossover::row_of(const Crossing& c) const {
  std::vector<Cell> row = {c.name(), c.density, cost_cell(c.there)};
  if (has_bound()) row.push_back(std::string(c.fixed_is_bound ? "at least" : ""));
  if (is_measured())
    row.push_back(c.there.value ? Cell(c.there.spread) : Cell());
  else
    row.push_back(c.fixed_density ? Cell(*c.fixed_density) : Cell());
  if (c.pattern) {
    row.push_back(c.pattern->density);
    row.push_back(cost_cell(*c.pattern));
    if (c.fixed_pattern) row.push_back(cost_cell(*c.fixed_pattern));
  }
  const bool only_pattern = c.there.note.empty() && c.pattern && !c.pattern->note.empty();
  const std::string note = only_pattern ? "this pattern: " + c.pattern->note : c.there.note;
  const std::string bound = c.fixed_is_bound ? bound_note(*c.fixed_density) : std::string();
  row.push_back(note + (note.empty() || bound.empty() ? "" : "; ") + bound);
  return row;
}

Table Crossover::curve_table() const {
  const Column cost = cost_column("", is_measured() ? "time, ms" : "cycles", 14);
  Table table{
      .key = "curve",
      .title = is_measured() ? "Time by density" : "Cycles by density",
      .columns = {
          {.key = "block", .title = "block"}, {.key = "density", .title = "density"}, cost}};
  for (const Crossing& c : crossings_) {
    for (const auto& [density, form] : c.curve)
      table.rows.push_back({c.name(), density, cost_cell(form)});
    for (const auto& [density, form] : c.fixed_curve)
      if (form.value) table.rows.push_back({c.name() + " static", density, cost_cell(form)});
  }
  table.chart = {
      .label = is_measured() ? "Milliseconds by density, measured" : "Cycles by density, planned",
      .x = "density",
      .y = {cost.key},
      .series = {"block"},
      .is_log = true};
  if (dense_.value) table.chart->level = {"dense", *dense_.value};
  return table;
}

std::string Crossover::dense_note() const {
  if (!dense_.value) return "The dense layer does not fit: " + dense_.note;
  if (is_measured())
    return fmt::format("The dense layer takes {} ({}).", time_text(dense_), dense_.kernel);
  return fmt::format("The dense layer takes {} cycles, with {}.",
                     fmt::group_digits(std::int64_t(*dense_.value)), dense_.kernel);
}

// Returns the verdict on the pattern of the file in its cheapest blocks.
std::string Crossover::pattern_verdict() const {
  const Crossing* best = nullptr;
  for (const Crossing& c : crossings_)
    if (c.pattern && c.pattern->value &&
        (best == nullptr || *c.pattern->value < *best->pattern->value))
      best = &c;
  if (best == nullptr) return "this pattern has no plan; ";
  const double sparse = *best->pattern->value, dense = dense_.value.value_or(sparse);
  const bool wins = !dense_.value || sparse < dense;
  const report::Better better =
      report::better_of(sparse, dense_.value, model_->error(*best->pattern, dense_));
  const char* const head = better == report::Better::Sparse  ? ""
                           : better == report::Better::Dense ? "dense wins: "
                                                             : "about equal, keep R dense: ";
  const std::string cost = is_measured()
                               ? time_text(*best->pattern)
                               : fmt::format("{} cycles", fmt::group_digits(std::int64_t(sparse)));
  std::string text = fmt::format("{}this pattern in {} blocks {}", head, best->name(), cost);
  if (dense_.value)
    text += fmt::format(", {:.1f}x {} dense", wins ? dense / sparse : sparse / dense,
                        wins            ? "faster than"
                        : is_measured() ? "as long as"
                                        : "as many as");
  return text + "; ";
}

// Returns the densities from which on dense costs less, or that it always does.
std::string Crossover::verdict() const {
  std::string pays;
  for (const Crossing& c : crossings_)
    if (c.density > 0) pays += fmt::format("{:.3g} ({}), ", c.density, c.name());
  std::string text;
  if (request_.pattern) text = pattern_verdict();
  if (!dense_.value)
    text += pays.empty() ? "nothing fits, " : "dense does not fit; sparse does up to density ";
  else if (!pays.empty())
    text += "sparse costs less up to density ";
  else
    text +=
        fmt::format("dense wins at every density from {} on, ", is_measured() ? "1/32" : "0.001");
  return text + pays + fixed_verdict() + how(is_measured());
}

// Returns the densities up to which patterns that stay cost less than dense.
std::string Crossover::fixed_verdict() const {
  std::string pays;
  for (const Crossing& c : crossings_)
    if (dense_.value && c.fixed_density.value_or(0) > 0)
      pays += fmt::format("{}{:.3g} ({}), ", c.fixed_is_bound ? "at least " : "", *c.fixed_density,
                          c.name());
  return pays.empty() ? pays : "static up to " + pays;
}

}  // namespace tessera::study
