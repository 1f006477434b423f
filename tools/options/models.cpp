#include "tessera/tools/options/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/study/forecast_model.hpp"
#include "tessera/study/measured_model.hpp"
#include "tessera/study/planned_model.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/interrupt.hpp"

namespace tessera::tools {
namespace {

std::string words_of(const study::Cost& cost, bool is_host) {
  if (!cost.value) return cost.name() + " has no plan";
  if (is_host) return fmt::format("{} {:.4f} ms", cost.name(), *cost.value * 1e3);
  return fmt::format("{} {} cycles", cost.name(), fmt::group_digits(std::int64_t(*cost.value)));
}

}  // namespace

std::optional<sparse::Csr<double>> load_pattern(LayerArguments& a) {
  if (a.matrix.empty()) return std::nullopt;
  sparse::Csr<double> ones = load_weights(a.matrix, {.keeps_order = false}).matrix;
  std::ranges::fill(ones.values, 1.0);
  a.output_size = ones.rows;
  a.input_size = ones.cols;
  return ones;
}

std::unique_ptr<study::CostModel> planned_model(const LayerArguments& a, const Problem& problem,
                                                const device::Machine& machine,
                                                const planner::Options& base) {
  const planner::Options options = make_options(a, base);
  if (options.constraints.use_dense.value_or(false))
    throw Error(ErrorCode::InvalidArgument,
                "planConstraints: useDense is true, but sparse plans are compared with a dense one "
                "here; omit it");
  const auto source = std::make_shared<PlanSource>(a.plan_cache);
  const auto plan_by = [source](const Problem& asked, const device::Machine& on,
                                const planner::Options& with, const PatternStats* stats) {
    return source->plan(asked, on, with, stats);
  };
  return std::make_unique<study::PlannedModel>(problem, machine, options,
                                               a.on_no_fit == OnNoFit::BestEffort, plan_by);
}

std::unique_ptr<study::CostModel> static_model(const LayerArguments& a, const Problem& problem,
                                               const device::Machine& machine,
                                               std::shared_ptr<study::DrawnPatterns> patterns) {
  const planner::StaticOptions options{make_options(a, {}).available_memory_proportion};
  return std::make_unique<study::StaticModel>(problem, machine, options, std::move(patterns));
}

host::FoundRates rates_of_this_computer() {
  return host::find_host_rates(study::host_rates_path());
}

std::unique_ptr<study::CostModel> measured_model(const Problem& problem, double spread) {
  return std::make_unique<study::MeasuredModel>(problem, /*threads=*/0, spread, is_interrupted);
}

std::string choose_block(LayerArguments& a, const planner::Options& base) {
  LayerArguments file = a;
  const auto ones = a.chooses_block ? load_pattern(file) : std::nullopt;
  return choose_block(a, base, ones ? &*ones : nullptr);
}

std::string choose_block(LayerArguments& a, const planner::Options& base,
                         const sparse::Csr<double>* ones) {
  if (!a.chooses_block) return {};
  LayerArguments sized = a;
  if (ones != nullptr) {
    sized.output_size = ones->rows;
    sized.input_size = ones->cols;
  }
  Problem layer = problem_of(sized);
  std::unique_ptr<study::CostModel> model;
  if (is_host(a)) {
    layer.size.g = 1;  // every group takes as long
    model = std::make_unique<study::ForecastModel>(layer, rates_of_this_computer());
  } else {
    model = planned_model(sized, layer, make_machine(sized), base);
  }
  std::vector<study::Cost> costs =
      study::in_square_blocks(*model, {.density = a.density, .pattern = ones});
  std::ranges::sort(costs, {}, [](const study::Cost& c) {
    return std::tuple(!c.value, c.value.value_or(0), c.block.rows);
  });
  a.chooses_block = false;
  a.block = costs.front().block;
  std::string note = "block size by " + std::string(is_host(a) ? "forecast" : "planned cycles");
  for (const study::Cost& cost : costs)
    note += (&cost == &costs.front() ? ": " : ", ") + words_of(cost, is_host(a));
  return note;
}

}  // namespace tessera::tools
