#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/tools/cost_source.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/internal/host_options.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/internal/manual.hpp"
#include "tessera/tools/internal/numbers.hpp"
#include "tessera/tools/internal/pod_options.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/internal/study.hpp"
#include "tessera/tools/tessera/commands.hpp"
#include "tessera/tools/tessera/pod_sweep.hpp"
#include "tessera/tools/tessera/sweep_grid.hpp"

namespace tessera::tools {
namespace {

using internal::Study, internal::StudyCell, internal::StudyChart, internal::StudyColumn,
    internal::StudyTable;

struct SweepArguments : LayerArguments {
  std::string over;
  std::vector<double> values;
  bool csv = false;
  internal::StudyOutput output;
  std::vector<SweepAxis> axes;
  std::vector<std::int64_t> devices;  // of pods to plan the layer for; empty: no pods
};

// A grid of layers, and what is known of its points.
class Sweep {
 public:
  explicit Sweep(const SweepArguments& a) : a_(a), grid_(grid_of(a.axes)), is_host_(is_host(a)) {
    for (const std::vector<double>& values : grid_) points_.push_back(point_of(values));
  }

  std::int64_t points() const { return std::ssize(points_); }

  bool has_cost() const { return has_cost_; }

  // Adds the row of the next point.
  void add(std::int64_t at) {
    const SweepPoint& point = points_[std::size_t(at)];
    std::vector<StudyCell> row;
    for (std::size_t i = 0; i < a_.axes.size(); ++i) row.push_back(axis_cell(i, at));
    FormCost sparse, dense;
    std::optional<FormCost> fixed;
    try {
      check_problem(point.problem);
      CostSource& costs = costs_of(point);
      dense = costs.dense();
      sparse = costs.random(point.problem.block, point.problem.density);
      fixed = costs.fixed(point.problem.block, point.problem.density);
    } catch (const Error& error) {
      // A combination of figures that is not legal concerns this point only.
      if (error.code() != ErrorCode::InvalidArgument) throw;
      sparse.note = error.what();
    } catch (const std::bad_alloc&) {
      sparse = dense = {};
      fixed.reset();
      sparse.note = "this computer does not have enough memory for the layer";
    }
    has_cost_ |= sparse.cost.has_value();
    add_figures(point.problem, sparse, fixed, dense, row);
    internal::change_results([&] {
      if (sparse.cost && dense.cost && *sparse.cost > 0) count(*dense.cost / *sparse.cost);
      rows_.push_back(std::move(row));
    });
  }

  Study study() const {
    Study study{.name = "sweep",
                .title = "Sweep over " + axis_names(),
                .subtitle = internal::layer_words(problem_of(a_)) + "; " + machine_words(),
                .is_complete = rows_.size() == points_.size(),
                .facts = {{"layer", internal::layer_words(problem_of(a_))},
                          {"machine", a_.machine},
                          {"how", is_host_ ? "measured" : "modelled"}},
                .tables = {},
                .verdict = verdict()};
    study.tables.push_back(table());
    return study;
  }

 private:
  SweepPoint point_of(const std::vector<double>& values) const {
    SweepPoint point{problem_of(a_), is_host_ ? device::machine_preset("gc200") : make_machine(a_)};
    for (std::size_t i = 0; i < values.size(); ++i) set_figure(a_.axes[i].figure, values[i], point);
    return point;
  }

  StudyCell axis_cell(std::size_t axis, std::int64_t at) const {
    const double value = grid_[std::size_t(at)][axis];
    if (value == std::floor(value) && std::abs(value) < 1e15) return std::int64_t(value);
    return value;
  }

  // Neighbours in the grid share what does not depend on the pattern.
  CostSource& costs_of(const SweepPoint& point) {
    SweepPoint layer = point;
    layer.problem.density = 1;
    layer.problem.block = {};
    if (costs_ && layer.problem == layer_.problem && layer.machine == layer_.machine)
      return *costs_;
    LayerArguments a = a_;
    a.output_size = point.problem.size.x;
    a.input_size = point.problem.size.y;
    a.batch_size = point.problem.size.z;
    constexpr double kSpread = 0.03;
    costs_ = is_host_ ? measured_costs(a, kSpread)
                      : planned_costs(a, point.problem, point.machine, fixed_);
    layer_ = layer;
    return *costs_;
  }

  void add_figures(const Problem& problem, const FormCost& sparse,
                   const std::optional<FormCost>& fixed, const FormCost& dense,
                   std::vector<StudyCell>& row) {
    const auto cost_cell = [&](const FormCost& form) {
      if (!form.cost) return StudyCell();
      return is_host_ ? StudyCell(*form.cost) : StudyCell(std::int64_t(*form.cost));
    };
    const double flops = 2.0 * double(problem.size.x) * double(problem.size.y) *
                         double(problem.size.z) * double(passes_of(problem).size());
    const auto rate_cell = [&](const FormCost& form, double useful) {
      if (!form.cost || *form.cost <= 0) return StudyCell();
      return StudyCell(useful / costs_->seconds(*form.cost));
    };
    row.push_back(cost_cell(sparse));
    if (is_host_) row.push_back(sparse.cost ? StudyCell(sparse.spread) : StudyCell());
    if (!is_host_) row.push_back(fixed ? cost_cell(*fixed) : StudyCell());
    row.push_back(cost_cell(dense));
    const bool has_both = sparse.cost && dense.cost && *sparse.cost > 0;
    row.push_back(has_both ? StudyCell(*dense.cost / *sparse.cost) : StudyCell());
    row.push_back(rate_cell(sparse, flops * problem.density));
    row.push_back(rate_cell(dense, flops));
    if (is_host_) {
      row.push_back(dense.cost ? StudyCell(dense.kernel) : StudyCell());
    } else {
      row.push_back(sparse.cost ? StudyCell(sparse.tiles) : StudyCell());
      row.push_back(sparse.cost ? StudyCell(sparse.temporary.value) : StudyCell());
    }
    row.push_back(sparse.cost || sparse.note.empty() ? sparse.note : "no plan: " + sparse.note);
  }

  // Counts the next point for the verdict. `ratio` is the cost of dense divided by that of sparse.
  void count(double ratio) {
    ++compared_;
    paying_ += ratio > 1;
    if (ratio <= best_ratio_) return;
    best_ratio_ = ratio;
    best_ = rows_.size();
  }

  std::vector<StudyColumn> columns() const {
    constexpr int kAxisWidth = 10;
    std::vector<StudyColumn> columns;
    for (const SweepAxis& axis : a_.axes)
      columns.push_back({.key = axis.figure,
                         .title = axis.figure,
                         .width = std::max(kAxisWidth, int(axis.figure.size()) + 2)});
    const std::vector<StudyColumn> measured = {
        {"seconds", "ms", 4, 1e3, 11},
        {"spread", "+-, %", 1, 100, 8},
        {"dense_seconds", "dense, ms", 4, 1e3, 11},
        {"dense_over_sparse", "ratio", 2, 1, 8},
        {"flops_per_second", "GFLOP/s", 1, 1e-9, 9},
        {"dense_flops_per_second", "dense GFLOP/s", 1, 1e-9, 15},
        {"dense_kernel", "dense product", -1, 1, 21},
        {"note", "note", -1, 1, 0}};
    const std::vector<StudyColumn> planned = {
        {"cycles", "cycles", -1, 1, 10},
        {"static_cycles", "static", -1, 1, 10},
        {"dense_cycles", "dense", -1, 1, 10},
        {"dense_over_sparse", "ratio", 2, 1, 7},
        {"flops_per_second", "TFLOP/s", 3, 1e-12, 9},
        {"dense_flops_per_second", "dense TFLOP/s", 3, 1e-12, 15},
        {"tiles", "tiles", -1, 1, 6},
        {"temporary_bytes", "temporary B", -1, 1, 13},
        {"note", "note", -1, 1, 0}};
    const auto& more = is_host_ ? measured : planned;
    columns.insert(columns.end(), more.begin(), more.end());
    return columns;
  }

  StudyTable table() const {
    StudyTable table{.key = "points",
                     .title = is_host_ ? "Measured time" : "Planned cycles",
                     .note =
                         "Ratio is the cost of the dense layer divided by that of the sparse "
                         "one; flops of the sparse layer are those of its non-zeros. Static is the "
                         "sparse layer with a pattern that is known and stays.",
                     .columns = columns(),
                     .rows = rows_};
    std::vector<std::string> series;
    for (std::size_t i = 1; i < a_.axes.size(); ++i) series.push_back(a_.axes[i].figure);
    const std::string cost = is_host_ ? "seconds" : "cycles";
    table.chart = {
        .kind = a_.axes.size() == 1 ? StudyChart::Kind::Bars : StudyChart::Kind::Lines,
        .label = fmt::format("{} by {}", is_host_ ? "Milliseconds" : "Cycles", axis_names()),
        .x = a_.axes.front().figure,
        .y = is_host_ ? std::vector{cost, "dense_" + cost}
                      : std::vector{cost, "static_" + cost, "dense_" + cost},
        .series = series};
    return table;
  }

  std::string axis_names() const {
    std::string names;
    for (const SweepAxis& axis : a_.axes) names += (names.empty() ? "" : ", ") + axis.figure;
    return names;
  }

  std::string machine_words() const {
    return is_host_ ? host::host_cpu_model() : make_machine(a_).name;
  }

  std::string verdict() const {
    if (compared_ == 0) return "no point has both a sparse and a dense cost";
    const char* const how = is_host_ ? "measured" : "modelled";
    if (paying_ == 0)
      return fmt::format(
          "dense wins at all of {} points; sparse comes nearest at {}, {:.2f}x of "
          "its speed ({})",
          compared_, point_words(best_), best_ratio_, how);
    return fmt::format("sparse pays at {} of {} points, most at {}: {:.1f}x faster than dense ({})",
                       paying_, compared_, point_words(best_), best_ratio_, how);
  }

  std::string point_words(std::size_t at) const {
    std::string words;
    for (std::size_t i = 0; i < a_.axes.size(); ++i)
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", a_.axes[i].figure, grid_[at][i]);
    return words;
  }

  SweepArguments a_;
  std::vector<std::vector<double>> grid_;
  bool is_host_;
  std::vector<SweepPoint> points_;
  std::vector<std::vector<StudyCell>> rows_;
  std::unique_ptr<CostSource> costs_;  // of layer_
  SweepPoint layer_;
  std::shared_ptr<StaticStudy> fixed_ = std::make_shared<StaticStudy>();
  bool has_cost_ = false;
  std::int64_t compared_ = 0, paying_ = 0;
  double best_ratio_ = 0;
  std::size_t best_ = 0;
};

std::string text_of(const SweepArguments& a, const Study& study) {
  if (a.csv) return internal::table_csv(study.tables.front());
  return internal::table_text(study.tables.front()) +
         internal::wrapped(std::string("ratio: dense / sparse; flops of non-zeros only") +
                               (is_host(a) ? "" : internal::kDenseSums) + "\nverdict    " +
                               study.verdict + "\n",
                           /*indented=*/4, /*flush=*/11);
}

int sweep(const SweepArguments& given) {
  SweepArguments a = given;
  static_cast<LayerArguments&>(a) = with_layer_keys(given);
  // A mistake in the options is one of all points, and not the reason why a point has no plan.
  planner::check_options(make_options(a, {}));
  internal::catch_interrupts();
  if (!a.devices.empty()) return sweep_devices({a, a.devices, a.csv, a.output});
  const auto sweep = std::make_shared<Sweep>(a);
  internal::Progress progress(false);
  internal::set_results_so_far([sweep, a] {
    const Study so_far = sweep->study();
    return a.output.json ? internal::study_json(so_far) : text_of(a, so_far);
  });
  for (std::int64_t at = 0; at < sweep->points() && !internal::is_interrupted(); ++at) {
    progress.set(fmt::format("point {} of {}", at + 1, sweep->points()), at, sweep->points());
    sweep->add(at);
  }
  progress.hide();
  const Study study = sweep->study();
  const int exit = internal::write_study(a.output, study, text_of(a, study));
  return exit == kOk && !sweep->has_cost() ? int(kNothingFits) : exit;
}

// Refuses an option that gives one value of a figure that varies.
void refuse_varied_options(const CLI::App& app, const std::vector<SweepAxis>& axes) {
  constexpr std::pair<const char*, const char*> kOptions[] = {
      {"density", "--density"},     {"density", "--sparsity"},   {"density", "--sparsity-factor"},
      {"batch", "--batch-size"},    {"block", "--block-size"},   {"inputs", "--input-size"},
      {"outputs", "--output-size"}, {"tiles", "--tiles-per-ipu"}};
  for (const auto& [figure, option] : kOptions)
    if (app.count(option) > 0 && std::ranges::find(axes, figure, &SweepAxis::figure) != axes.end())
      throw CLI::ValidationError(option,
                                 fmt::format("--over gives the values of {}; omit this", figure));
}

// A sweep over devices varies nothing else.
void check_devices(const CLI::App& app, const SweepArguments& a) {
  if (is_host(a))
    throw CLI::ValidationError("--devices", "takes a modelled machine, and --machine is host");
  for (const std::int64_t devices : a.devices) device::pod_of(make_machine(a), devices);
  // Efficiency is compared with the first pod.
  if (std::ranges::adjacent_find(a.devices, std::greater_equal()) != a.devices.end())
    throw CLI::ValidationError("--devices",
                               "every number must be greater than the one before it, as in 1,4,16");
  internal::require_weights(app, a);
}

void check_together(const CLI::App& app, SweepArguments& a) {
  if (!a.matrix.empty())
    throw CLI::ValidationError(
        "--matrix",
        "sweep plans random patterns only; give --input-size, --output-size and --density");
  if (!a.devices.empty()) return check_devices(app, a);
  if (a.over.empty())
    throw CLI::ValidationError("--over", "is required, or --devices for a sweep over pods");
  a.axes = parse_axes(a.over, a.values);
  const auto has = [&](const char* figure) {
    return std::ranges::find(a.axes, figure, &SweepAxis::figure) != a.axes.end();
  };
  const auto first = [&](const char* figure) {
    return std::ranges::find(a.axes, figure, &SweepAxis::figure)->values.front();
  };
  refuse_varied_options(app, a.axes);
  if (has("density")) a.density = first("density");
  if (has("inputs")) a.input_size = std::int64_t(first("inputs"));
  if (has("outputs")) a.output_size = std::int64_t(first("outputs"));
  internal::refuse_tile_options(app, a, {"--tiles-per-ipu", "--plan-constraints", "--plan-cache"});
  for (const SweepAxis& axis : a.axes)
    if (is_host(a) && is_of_machine(axis.figure))
      throw CLI::ValidationError(
          "--over", axis.figure + " belongs to modelled machines, and this computer is measured");
  if (a.input_size > 0 && a.output_size > 0 && has("density")) return;
  internal::require_weights(app, a);
}

}  // namespace

void add_sweep_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command =
      app.add_subcommand("sweep",
                         "Compares a layer with the dense one for all values of some figures of "
                         "the layer or the machine.");
  command->footer(
      std::string(internal::kExitCodes) +
      "\nExamples: tessera sweep --over tiles --values 368,736,1472 --input-size 1024 \\\n"
      "            --output-size 1024 --density 0.1 --batch-size 64 --html sweep.html\n"
      "          tessera sweep --over density=0.01:0.5,block=1,4,8,16 --input-size 1024 \\\n"
      "            --output-size 1024 --batch-size 64 --machine host\n"
      "          tessera sweep --devices 1,4,16,64,256,1024 --machine bow --input-size 8192 \\\n"
      "            --output-size 8192 --density 0.0625 --block-size 16 --batch-size 4096");
  const auto a = std::make_shared<SweepArguments>();
  command
      ->add_option("--over", a->over,
                   "figures to vary with their values, for example "
                   "density=0.01:0.5,block=1,4,8,16; a range FROM:TO:POINTS is even on a "
                   "logarithmic scale. Figures: " +
                       figure_names())
      ->type_name("FIGURE=VALUES");
  internal::require_whole(
      command->add_option("--devices", a->devices,
                          "numbers of machines, separated by commas: plan the layer for pods of "
                          "them, once with this batch and once with as many times this batch"),
      1, internal::kMostDevices)
      ->delimiter(',')
      ->excludes("--over");
  command->add_option("--values", a->values, "values of a single figure, separated by commas")
      ->delimiter(',');
  auto* csv = command->add_flag("--csv", a->csv, "print the table as CSV");
  internal::add_study_options(*command, a->output);
  csv->excludes("--json");
  internal::add_weights_options(*command, *a);
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  internal::add_planner_options(*command, *a);
  command->remove_option(command->get_option("--plan"));
  command->remove_option(command->get_option("--on-no-fit"));
  command->callback([command, a, &run] {
    check_together(*command, *a);
    run = [a] { return sweep(*a); };
  });
}

}  // namespace tessera::tools
