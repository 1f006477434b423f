#include "tessera/study/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/study/verdict.hpp"

namespace tessera::study {
namespace {

constexpr double kSpread = 0.03;  // of measured times

constexpr const char* kNote =
    "Ratio is the cost of the dense layer divided by that of the sparse one; flops of the sparse "
    "layer are those of its non-zeros. Static is the sparse layer with a pattern that is known and "
    "stays.";

// Neighbours in the grid share what does not depend on the pattern.
SweepPoint without_pattern(SweepPoint point) {
  point.problem.density = 1;
  point.problem.block = {};
  return point;
}

Cell number_cell(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::int64_t(value);
  return value;
}

}  // namespace

Sweep::Sweep(const Problem& layer, std::vector<SweepAxis> axes, Target target)
    : layer_(layer), axes_(std::move(axes)), target_(std::move(target)) {
  check_axes(axes_);
  for (const SweepAxis& axis : axes_)
    if (is_measured() && is_of_machine(axis.figure))
      throw Error(
          ErrorCode::InvalidArgument,
          "sweep: " + axis.figure + " belongs to modelled machines, and this computer is measured");
  grid_ = grid_of(axes_);
  const device::Machine machine =
      is_measured() ? device::machine_preset("gc200") : *target_.machine;
  for (const std::vector<double>& values : grid_) {
    SweepPoint& point = points_.emplace_back(SweepPoint{layer_, machine});
    for (std::size_t i = 0; i < values.size(); ++i) set_figure(axes_[i].figure, values[i], point);
  }
}

void Sweep::use_models_of(const SweepPoint& point) {
  const SweepPoint layer = without_pattern(point);
  if (model_ && layer.problem == modelled_.problem && layer.machine == modelled_.machine) return;
  if (!is_measured()) target_.machine = layer.machine;
  model_ = target_.seen(layer.problem, kSpread);
  static_model_ = target_.fixed(layer.problem);
  modelled_ = layer;
}

Sweep::Costs Sweep::costs_at(const SweepPoint& point) {
  Costs costs;
  const Form form{point.problem.block, point.problem.density};
  try {
    check_problem(point.problem);
    use_models_of(point);
    costs.dense = model_->dense();
    costs.sparse = model_->sparse(form);
    if (form.density >= 1) costs.dense = best_dense(*model_, form, costs.sparse);
    costs.error = model_->error(costs.sparse, costs.dense);
    costs.has_fixed = static_model_ != nullptr;
    if (static_model_) costs.fixed = static_model_->sparse(form);
  } catch (const Error& error) {
    // A combination of figures that is not legal concerns this point only.
    if (error.code() != ErrorCode::InvalidArgument) throw;
    costs.sparse.note = error.what();
  } catch (const std::bad_alloc&) {
    costs = {};
    costs.sparse.note = "this computer does not have enough memory for the layer";
  }
  return costs;
}

void Sweep::add(const std::function<void(const std::function<void()>&)>& change) {
  const std::size_t at = rows_.size();
  const Costs costs = costs_at(points_[at]);
  has_cost_ |= costs.sparse.value.has_value();
  std::vector<Cell> row = row_of(at, costs);
  change([&] {
    count(costs);
    rows_.push_back(std::move(row));
  });
}

std::vector<Cell> Sweep::row_of(std::size_t at, const Costs& costs) const {
  const auto& [sparse, fixed, dense, has_fixed, error] = costs;
  const Problem& problem = points_[at].problem;
  const auto cost_cell = [&](const Cost& cost) {
    if (!cost.value) return Cell();
    return is_measured() ? Cell(*cost.value) : Cell(std::int64_t(*cost.value));
  };
  const double flops = 2.0 * double(problem.size.x) * double(problem.size.y) *
                       double(problem.size.z) * double(passes_of(problem).size());
  const auto rate_cell = [&](const Cost& cost, double useful) {
    if (!cost.value || *cost.value <= 0) return Cell();
    return Cell(useful / model_->seconds(*cost.value));
  };
  const auto if_sparse = [&](Cell cell) { return sparse.value ? std::move(cell) : Cell(); };
  std::vector<Cell> row;
  for (const double value : grid_[at]) row.push_back(number_cell(value));
  row.push_back(cost_cell(sparse));
  row.push_back(is_measured() ? if_sparse(sparse.spread) : has_fixed ? cost_cell(fixed) : Cell());
  row.push_back(cost_cell(dense));
  const bool has_both = sparse.value && dense.value && *sparse.value > 0;
  row.push_back(has_both ? Cell(*dense.value / *sparse.value) : Cell());
  row.push_back(rate_cell(sparse, flops * problem.density));
  row.push_back(rate_cell(dense, flops));
  if (is_measured()) {
    row.push_back(dense.value ? Cell(dense.kernel) : Cell());
  } else {
    row.push_back(if_sparse(sparse.tiles));
    row.push_back(if_sparse(sparse.temporary.value));
  }
  row.push_back(sparse.value || sparse.note.empty() ? sparse.note : "no plan: " + sparse.note);
  return row;
}

void Sweep::count(const Costs& costs) {
  const auto& [sparse, fixed, dense, has_fixed, error] = costs;
  if (!sparse.value || !dense.value || *sparse.value <= 0) return;
  const report::Better better = report::better_of(sparse.value, dense.value, error);
  ++compared_;
  paying_ += better == report::Better::Sparse ? 1 : 0;
  equal_ += better == report::Better::Neither ? 1 : 0;
  const double ratio = *dense.value / *sparse.value;
  if (ratio <= best_ratio_) return;
  best_ratio_ = ratio;
  best_ = rows_.size();
}

std::vector<Column> Sweep::columns() const {
  constexpr int kAxisWidth = 10;
  std::vector<Column> columns;
  for (const SweepAxis& axis : axes_)
    columns.push_back({.key = axis.figure,
                       .title = axis.figure,
                       .width = std::max(kAxisWidth, int(axis.figure.size()) + 2)});
  const std::vector<Column> measured = {{"seconds", "ms", 4, 1e3, 11},
                                        {"spread", "+-, %", 1, 100, 8},
                                        {"dense_seconds", "dense, ms", 4, 1e3, 11},
                                        {"dense_over_sparse", "ratio", 2, 1, 8},
                                        {"flops_per_second", "GFLOP/s", 1, 1e-9, 9},
                                        {"dense_flops_per_second", "dense GFLOP/s", 1, 1e-9, 15},
                                        {"dense_kernel", "dense product", -1, 1, 21},
                                        {"note", "note", -1, 1, 0}};
  const std::vector<Column> planned = {{"cycles", "cycles", -1, 1, 10},
                                       {"static_cycles", "static", -1, 1, 10},
                                       {"dense_cycles", "dense", -1, 1, 10},
                                       {"dense_over_sparse", "ratio", 2, 1, 7},
                                       {"flops_per_second", "TFLOP/s", 3, 1e-12, 9},
                                       {"dense_flops_per_second", "dense TFLOP/s", 3, 1e-12, 15},
                                       {"tiles_used", "tiles", -1, 1, 6},
                                       {"temporary_bytes", "temporary B", -1, 1, 13},
                                       {"note", "note", -1, 1, 0}};
  const auto& more = is_measured() ? measured : planned;
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

Table Sweep::table() const {
  Table table{.key = "points",
              .title = is_measured() ? "Measured time" : "Planned cycles",
              .note = kNote,
              .columns = columns(),
              .rows = rows_};
  std::vector<std::string> series;
  for (std::size_t i = 1; i < axes_.size(); ++i) series.push_back(axes_[i].figure);
  const std::string cost = is_measured() ? "seconds" : "cycles";
  table.chart = {
      .kind = axes_.size() == 1 ? Chart::Kind::Bars : Chart::Kind::Lines,
      .label = fmt::format("{} by {}", is_measured() ? "Milliseconds" : "Cycles", axis_names()),
      .x = axes_.front().figure,
      .y = is_measured() ? std::vector{cost, "dense_" + cost}
                         : std::vector{cost, "static_" + cost, "dense_" + cost},
      .series = series};
  return table;
}

Report Sweep::report() const {
  return {.name = "sweep",
          .title = "Sweep over " + axis_names(),
          .subtitle = layer_words(layer_) + "; " + target_.words(),
          .is_complete = rows_.size() == points_.size(),
          .facts = {{"layer", layer_words(layer_)},
                    {"machine", target_.name},
                    {"how", is_measured() ? "measured" : "modelled"}},
          .tables = {table()},
          .verdict = verdict()};
}

std::string Sweep::axis_names() const {
  std::string names;
  for (const SweepAxis& axis : axes_) names += (names.empty() ? "" : ", ") + axis.figure;
  return names;
}

std::string Sweep::point_words(std::size_t at) const {
  std::string words;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", axes_[i].figure, grid_[at][i]);
  return words;
}

std::string Sweep::verdict() const {
  if (compared_ == 0) return "no point has both a sparse and a dense cost";
  const char* const how = is_measured() ? "measured" : "modelled";
  const std::string equal = equal_ == 0 ? "" : fmt::format("; {} about equal, keep dense", equal_);
  if (paying_ == 0)
    return fmt::format(
        "dense wins at {} {} points; sparse comes nearest at {}, {:.2f}x of its speed{} ({})",
        equal_ == 0 ? "all of" : fmt::format("{} of", compared_ - equal_), compared_,
        point_words(best_), best_ratio_, equal, how);
  return fmt::format("sparse pays at {} of {} points, most at {}: {:.1f}x faster than dense{} ({})",
                     paying_, compared_, point_words(best_), best_ratio_, equal, how);
}

std::string sweep_text(const Report& report, bool is_measured) {
  std::string notes;
  if (report.name == "sweep")
    notes = std::string("ratio: dense / sparse; flops of non-zeros only") +
            (is_measured ? "" : kDenseSums) + "\n";
  return table_text(report.tables.front()) +
         wrapped(notes + "verdict    " + report.verdict + "\n", /*indented=*/4, /*flush=*/11);
}

}  // namespace tessera::study
