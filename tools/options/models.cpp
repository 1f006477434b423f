#include "tessera/tools/options/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
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
  sparse::Csr<double> ones = io::read_weights(a.matrix, {.keeps_order = false}).matrix;
  std::ranges::fill(ones.values, 1.0);
  a.output_size = ones.rows;
  a.input_size = ones.cols;
  return ones;
}

study::Target target_of(const LayerArguments& a, const planner::Options& base) {
  study::Target target{.name = a.machine, .is_stopped = is_interrupted};
  if (is_host(a)) return target;
  target.machine = make_machine(a);
  target.options = make_options(a, base);
  if (target.options.constraints.use_dense.value_or(false))
    throw Error(ErrorCode::InvalidArgument,
                "planConstraints: useDense is true, but sparse plans are compared with a dense one "
                "here; omit it");
  target.relaxes = a.on_no_fit == OnNoFit::BestEffort;
  const auto source = std::make_shared<PlanSource>(a.plan_cache);
  target.plan_by = [source](const Problem& asked, const device::Machine& on,
                            const planner::Options& with, const PatternStats* stats) {
    return source->plan(asked, on, with, stats);
  };
  return target;
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
  if (is_host(a)) layer.size.g = 1;  // every group takes as long
  const auto model = target_of(sized, base).expected(layer);
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
