#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/tools/block_study.hpp"
#include "tessera/tools/cost_source.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/internal/host_options.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/internal/manual.hpp"
#include "tessera/tools/internal/numbers.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/internal/study.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::tools {
namespace {

using internal::Study, internal::StudyCell, internal::StudyColumn, internal::StudyTable;

// The points of the curve, close enough for a line on a logarithmic axis.
constexpr double kDensities[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1};

// Measured costs are halved so often, to 1/32 of the densities.
constexpr int kHalvings = 5;
constexpr double kMeasuredStep = 1.0 / (1 << kHalvings);

struct CrossoverArguments : LayerArguments {
  internal::StudyOutput output;
  bool block_given = false;
};

// The layer and the blocks to compare with dense.
struct CrossoverRequest {
  LayerArguments layer;
  std::vector<BlockShape> blocks;
  std::optional<sparse::Csr<double>> pattern;  // of a file, with values 1; empty: none was given
};

// The crossover of one block shape.
struct Crossing {
  std::string block;
  double density = 0;
  FormCost there;                   // its note is the reason why even the lowest density has none
  std::optional<FormCost> pattern;  // of the file
  std::vector<std::pair<double, FormCost>> curve;

  // The same for a pattern that stays; only of modelled machines.
  std::optional<double> fixed_density;  // no value: no static kernel has this block
  // The density found is that of the largest pattern tried, and costs less than dense.
  bool fixed_is_bound = false;
  std::optional<FormCost> fixed_pattern;
  std::vector<std::pair<double, FormCost>> fixed_curve;
};

// The crossovers of a layer.
class Crossover {
 public:
  explicit Crossover(CrossoverRequest request)
      : request_(std::move(request)),
        is_host_(is_host(request_.layer)),
        costs_(is_host_ ? measured_costs(request_.layer, kMeasuredStep)
                        : planned_costs(request_.layer, problem_of(request_.layer),
                                        make_machine(request_.layer))),
        dense_(costs_->dense()) {}

  // Adds the crossovers of all block shapes; fewer after Ctrl-C. Calls `after_each` when one has
  // been added.
  void run(bool with_curve, internal::Progress& progress, const std::function<void()>& after_each) {
    for (const BlockShape block : request_.blocks) {
      if (internal::is_interrupted()) break;
      const std::string name = fmt::format("{}x{}", block.rows, block.cols);
      progress.set(fmt::format("{} {} blocks", is_host_ ? "measuring" : "planning", name),
                   std::ssize(crossings_), std::ssize(request_.blocks));
      Crossing crossing = crossing_of(block, with_curve);
      if (internal::is_interrupted()) break;
      crossing.block = name;
      crossings_.push_back(std::move(crossing));
      after_each();
    }
    progress.hide();
  }

  bool has_cost() const {
    return dense_.cost || std::ranges::any_of(crossings_, [](const Crossing& c) {
             return c.there.cost.has_value();
           });
  }

  Study study() const {
    const Problem problem = problem_of(request_.layer);
    const std::string machine = is_host_ ? host::host_cpu_model() : request_.layer.machine;
    Study study{.name = "crossover",
                .title = "Sparse against dense",
                .subtitle = internal::layer_words(problem) + "; " + machine,
                .is_complete = crossings_.size() == request_.blocks.size(),
                .facts = {{"layer", internal::layer_words(problem)},
                          {"machine", request_.layer.machine},
                          {"how", how()},
                          {is_host_ ? "dense_seconds" : "dense_cycles", cost_cell(dense_)},
                          {"dense",
                           is_host_ || !dense_.cost ? dense_.kernel : "planned, " + dense_.kernel}},
                .tables = {blocks_table(), curve_table()},
                .verdict = verdict()};
    return study;
  }

  std::string text() const {
    const Study study = this->study();
    std::string text = fmt::format("dense: no plan, {}\n", dense_.note);
    if (dense_.cost)
      text = is_host_ ? fmt::format("dense: {} ({}, measured)\n", time_text(dense_), dense_.kernel)
                      : fmt::format("dense: {} cycles (planned, {})\n", std::int64_t(*dense_.cost),
                                    dense_.kernel);
    text += internal::table_text(study.tables.front());
    text += is_host_
                ? "densities in steps of 1/32; times are measured, +- half the range of the "
                  "middle half\n"
                : "densities in steps of 0.001; cycles are modelled; static patterns are known "
                  "when they are planned, and stay\n";
    return internal::wrapped(text + "verdict    " + study.verdict + "\n", /*indented=*/4,
                             /*flush=*/11);
  }

 private:
  const char* how() const { return is_host_ ? "measured" : "modelled"; }

  static std::string time_text(const FormCost& form) {
    return fmt::format("{:.4f} ms +-{:.1f} %", *form.cost * 1e3, 100 * form.spread);
  }

  StudyCell cost_cell(const FormCost& form) const {
    if (!form.cost) return {};
    return is_host_ ? StudyCell(*form.cost) : StudyCell(std::int64_t(*form.cost));
  }

  Crossing crossing_of(BlockShape block, bool with_curve) {
    Crossing crossing;
    const auto cost_at = [&](double density) {
      const FormCost form = costs_->cheapest(block, density);
      // Measured points are part of the curve. Modelled ones are planned again later, which is
      // cheap.
      if (is_host_) crossing.curve.emplace_back(density, form);
      return form;
    };
    const double dense = dense_.cost.value_or(std::numeric_limits<double>::max());
    crossing.density =
        is_host_ ? measured_density(dense, cost_at)
                 : break_even_density([&](double density) { return cost_at(density).cost; }, dense);
    if (is_host_) {
      for (const auto& [density, form] : crossing.curve)
        if (density == crossing.density) crossing.there = form;
      std::ranges::sort(crossing.curve, {}, [](const auto& point) { return point.first; });
    } else if (crossing.density > 0) {
      crossing.there = cost_at(crossing.density);
    } else if (FormCost lowest = costs_->random(block, kDensities[0]); !lowest.cost) {
      crossing.there.note = std::move(lowest.note);
    }
    if (request_.pattern) crossing.pattern = costs_->pattern(*request_.pattern, block);
    if (with_curve && !is_host_)
      for (const double density : kDensities)
        crossing.curve.emplace_back(density, cost_at(density));
    if (!is_host_) add_fixed(block, dense, with_curve, crossing);
    return crossing;
  }

  // Returns whether no static plan was made beyond the density found.
  bool ends_at_limit(BlockShape block, double found) const {
    const Dims size = problem_of(request_.layer).size;
    const double places = double(ceil_div(size.x, block.rows) * ceil_div(size.y, block.cols));
    const double most = double(kMostStaticBlocks) / places;
    return most < 1 && found + 0.001 >= most;
  }

  static std::string bound_note(const Crossing& c) {
    if (!c.fixed_is_bound) return {};
    return fmt::format(
        "static: at least {:.3f}; larger patterns, of more than {} blocks, were not "
        "tried",
        *c.fixed_density, kMostStaticBlocks);
  }

  bool has_bound() const { return std::ranges::any_of(crossings_, &Crossing::fixed_is_bound); }

  // Adds the crossover of patterns that stay. They cost less than those that may change, so the
  // search begins at the crossover of these, or between two points of the curve.
  void add_fixed(BlockShape block, double dense, bool with_curve, Crossing& crossing) {
    const auto cost_at = [&](double density) {
      if (internal::is_interrupted()) return FormCost{.cost = {}, .note = {}, .kernel = {}};
      return costs_->fixed(block, density).value();
    };
    if (request_.pattern) crossing.fixed_pattern = costs_->fixed_pattern(*request_.pattern, block);
    if (!codelets::has_static_kernel(block)) return;
    KnownCosts known{
        .points = {}, .guess = crossing.density, .highest = costs_->highest_fixed(block, dense)};
    for (const double density : kDensities) {
      if (!with_curve) break;
      crossing.fixed_curve.emplace_back(density, cost_at(density));
      known.points.emplace_back(density, crossing.fixed_curve.back().second.cost);
    }
    crossing.fixed_density =
        break_even_density([&](double density) { return cost_at(density).cost; }, dense, known);
    crossing.fixed_is_bound = ends_at_limit(block, *crossing.fixed_density);
  }

  // Halves the interval of densities; returns the largest one that is faster than dense.
  template <class CostAt>
  static double measured_density(double dense, const CostAt& cost_at) {
    double low = 0, high = 1;
    for (int step = 0; step < kHalvings && !internal::is_interrupted(); ++step) {
      const double middle = (low + high) / 2;
      (cost_at(middle).cost < dense ? low : high) = middle;
    }
    return low;
  }

  StudyColumn cost_column(const std::string& prefix, const std::string& title, int width) const {
    if (is_host_)
      return {
          .key = prefix + "seconds", .title = title, .decimals = 4, .scale = 1e3, .width = width};
    return {.key = prefix + "cycles", .title = title, .width = width};
  }

  StudyTable blocks_table() const {
    StudyTable table{.key = "blocks",
                     .title = "The density up to which sparse costs less",
                     .note = dense_note(),
                     .columns = {{.key = "block", .title = "block", .width = 10},
                                 {.key = "crossover_density",
                                  .title = "sparse wins up to",
                                  .decimals = 3,
                                  .width = 20},
                                 cost_column("", is_host_ ? "ms there" : "cycles there", 16)},
                     .rows = {}};
    if (has_bound())
      table.columns.push_back({.key = "static_crossover_is", .title = "bound", .width = 10});
    if (!is_host_)
      table.columns.push_back(
          {.key = "static_crossover_density", .title = "static up to", .decimals = 3, .width = 13});
    if (is_host_)
      table.columns.push_back(
          {.key = "spread", .title = "+-, %", .decimals = 1, .scale = 100, .width = 8});
    if (request_.pattern) {
      table.columns.push_back(
          {.key = "pattern_density", .title = "density here", .decimals = 4, .width = 14});
      table.columns.push_back(cost_column("pattern_", is_host_ ? "ms here" : "cycles here", 13));
      if (!is_host_) table.columns.push_back(cost_column("static_pattern_", "static here", 13));
    }
    table.columns.push_back({.key = "note", .title = "note", .width = 0});
    for (const Crossing& c : crossings_) table.rows.push_back(row_of(c));
    return table;
  }

  std::vector<StudyCell> row_of(const Crossing& c) const {
    std::vector<StudyCell> row = {c.block, c.density, cost_cell(c.there)};
    if (has_bound()) row.push_back(std::string(c.fixed_is_bound ? "at least" : ""));
    if (is_host_)
      row.push_back(c.there.cost ? StudyCell(c.there.spread) : StudyCell());
    else
      row.push_back(c.fixed_density ? StudyCell(*c.fixed_density) : StudyCell());
    if (c.pattern) {
      row.push_back(c.pattern->density);
      row.push_back(cost_cell(*c.pattern));
      if (c.fixed_pattern) row.push_back(cost_cell(*c.fixed_pattern));
    }
    const bool only_pattern = c.there.note.empty() && c.pattern && !c.pattern->note.empty();
    const std::string note = only_pattern ? "this pattern: " + c.pattern->note : c.there.note;
    const std::string bound = bound_note(c);
    row.push_back(note + (note.empty() || bound.empty() ? "" : "; ") + bound);
    return row;
  }

  StudyTable curve_table() const {
    const StudyColumn cost = cost_column("", is_host_ ? "time, ms" : "cycles", 14);
    StudyTable table{.key = "curve",
                     .title = is_host_ ? "Time by density" : "Cycles by density",
                     .note = {},
                     .columns = {{.key = "block", .title = "block"},
                                 {.key = "density", .title = "density"},
                                 cost},
                     .rows = {}};
    for (const Crossing& c : crossings_) {
      for (const auto& [density, form] : c.curve)
        table.rows.push_back({c.block, density, cost_cell(form)});
      for (const auto& [density, form] : c.fixed_curve)
        if (form.cost) table.rows.push_back({c.block + " static", density, cost_cell(form)});
    }
    table.chart = {
        .label = is_host_ ? "Milliseconds by density, measured" : "Cycles by density, planned",
        .x = "density",
        .y = {cost.key},
        .series = {"block"},
        .is_log = true};
    if (dense_.cost) table.chart->level = {"dense", *dense_.cost};
    return table;
  }

  std::string dense_note() const {
    if (!dense_.cost) return "The dense layer does not fit: " + dense_.note;
    if (is_host_)
      return fmt::format("The dense layer takes {} ({}).", time_text(dense_), dense_.kernel);
    return fmt::format("The dense layer takes {} cycles, with {}.",
                       fmt::group_digits(std::int64_t(*dense_.cost)), dense_.kernel);
  }

  // Returns the verdict on the pattern of the file in its cheapest blocks.
  std::string pattern_verdict() const {
    const Crossing* best = nullptr;
    for (const Crossing& c : crossings_)
      if (c.pattern && c.pattern->cost &&
          (best == nullptr || *c.pattern->cost < *best->pattern->cost))
        best = &c;
    if (best == nullptr) return "this pattern has no plan; ";
    const double sparse = *best->pattern->cost, dense = dense_.cost.value_or(sparse);
    const bool wins = !dense_.cost || sparse < dense;
    const std::string cost =
        is_host_ ? time_text(*best->pattern)
                 : fmt::format("{} cycles", fmt::group_digits(std::int64_t(sparse)));
    std::string text = fmt::format("{}this pattern in {} blocks {}",
                                   wins ? "" : "dense wins: ", best->block, cost);
    if (dense_.cost)
      text += fmt::format(", {:.1f}x {} dense", wins ? dense / sparse : sparse / dense,
                          wins       ? "faster than"
                          : is_host_ ? "as long as"
                                     : "as many as");
    return text + "; ";
  }

  // Returns the densities from which on dense costs less, or that it always does.
  std::string verdict() const {
    std::string pays;
    for (const Crossing& c : crossings_)
      if (c.density > 0) pays += fmt::format("{:.3g} ({}), ", c.density, c.block);
    std::string text;
    if (request_.pattern) text = pattern_verdict();
    if (!dense_.cost)
      text += pays.empty() ? "nothing fits, " : "dense does not fit; sparse does up to density ";
    else if (!pays.empty())
      text += "sparse pays up to density ";
    else
      text += fmt::format("dense wins at every density from {} on, ", is_host_ ? "1/32" : "0.001");
    return text + pays + fixed_verdict() + how();
  }

  // Returns the densities up to which patterns that stay cost less than dense.
  std::string fixed_verdict() const {
    std::string pays;
    for (const Crossing& c : crossings_)
      if (dense_.cost && c.fixed_density.value_or(0) > 0)
        pays += fmt::format("{}{:.3g} ({}), ", c.fixed_is_bound ? "at least " : "",
                            *c.fixed_density, c.block);
    return pays.empty() ? pays : "static up to " + pays;
  }

  CrossoverRequest request_;
  bool is_host_;
  std::unique_ptr<CostSource> costs_;
  FormCost dense_;
  std::vector<Crossing> crossings_;
};

CrossoverRequest request_of(const CrossoverArguments& a) {
  CrossoverRequest request{.layer = with_layer_keys(a), .blocks = {}, .pattern = {}};
  if (a.block_given) request.blocks = {a.block};
  for (const std::int64_t side : kBlockSides)
    if (!a.block_given) request.blocks.push_back({side, side});
  request.pattern = load_pattern(request.layer);
  return request;
}

int crossover(const CrossoverArguments& a) {
  internal::catch_interrupts();
  internal::Progress progress(false);
  progress.set("the dense layer");
  Crossover study(request_of(a));
  study.run(a.output.wants_data(), progress, [&] {
    internal::set_results_so_far(a.output.json ? internal::study_json(study.study())
                                               : study.text());
  });
  const int exit = internal::write_study(a.output, study.study(), study.text());
  if (exit != kOk || study.has_cost()) return exit;
  print_message(
      "tessera: no block has a plan; the note of each says why; use more tiles, a smaller batch or "
      "a "
      "smaller layer\n");
  return int(kNothingFits);
}

// Adds the size of the layer, which a file may give.
void add_size_options(CLI::App& app, LayerArguments& a) {
  auto* matrix =
      app.add_option("--matrix", a.matrix,
                     "file of weights, which gives the size; its pattern is compared, too")
          ->type_name("FILE");
  for (auto* size : {app.add_option("--input-size", a.input_size, "number of inputs"),
                     app.add_option("--output-size", a.output_size, "number of outputs")})
    internal::require_whole(size, 1, internal::kLargestSize)->excludes(matrix);
}

void check_together(const CLI::App& app, CrossoverArguments& a) {
  a.block_given = app.count("--block-size") > 0;
  if (a.matrix.empty() && (a.input_size == 0 || a.output_size == 0))
    throw CLI::ValidationError("size", "give --matrix FILE, or --input-size and --output-size");
  internal::refuse_tile_options(
      app, a, {"--tiles-per-ipu", "--plan-constraints", "--plan-cache", "--on-no-fit"});
}

}  // namespace

void add_crossover_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "crossover", "Finds the density up to which a sparse layer costs less than a dense one.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera crossover --input-size 1024 --output-size 1024 "
                  "--batch-size 64 --single-phase fwd");
  const auto a = std::make_shared<CrossoverArguments>();
  add_size_options(*command, *a);
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  internal::add_planner_options(*command, *a);
  command->remove_option(command->get_option("--plan"));
  internal::add_study_options(*command, a->output);
  command->callback([command, a, &run] {
    check_together(*command, *a);
    run = [a] { return crossover(*a); };
  });
}

}  // namespace tessera::tools
