#include "tessera/planner/dense_grad_w.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/dense_search.hpp"
#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner {
namespace {

constexpr std::int64_t kMostBlocks = std::int64_t{1} << 32;

[[noreturn]] void refuse_search(const std::string& what) {
  throw_invalid("search for the largest gradients: " + what);
}

std::int64_t blocks_of(const Problem& problem) {
  return checked_mul(ceil_div(problem.size.x, problem.block.rows),
                     ceil_div(problem.size.y, problem.block.cols), "blocks of a layer");
}

void check_search(const Problem& problem, const device::Machine& machine,
                  const DenseGradWOptions& options) {
  check_problem(problem);
  device::check_machine(machine, "machine");
  if (problem.size.g != 1)
    refuse_search(fmt::format("the layer has {} groups; there must be 1", problem.size.g));
  if (blocks_of(problem) > kMostBlocks)
    refuse_search(fmt::format("the layer has {} blocks; the maximum is {}; choose larger blocks",
                              blocks_of(problem), kMostBlocks));
  if (options.places < 1 || options.places > blocks_of(problem))
    refuse_search(
        fmt::format("places is {}; it must be in 1..{}", options.places, blocks_of(problem)));
  if (options.spare < 1) refuse_search(fmt::format("spare is {}; the minimum is 1", options.spare));
  internal::check_memory_share(options.available_memory_proportion);
}

std::int64_t kept_places(const Problem& problem, const device::Machine& machine,
                         const DenseGradWOptions& options) {
  constexpr std::int64_t kFewest = 64;  // take 1 KiB, and small layers are searched once
  const std::int64_t even = ceil_div(options.places, machine.tiles);
  const std::int64_t all = blocks_of(problem);
  return std::min(std::max(kFewest, options.spare * even), all);
}

DenseGradWPlan plan_of(const internal::DenseCase& c, const internal::DenseChoice& best) {
  DensePlan dense{c.kernel.data_type, c.kernel.partials_type, 1, {}, {}};
  internal::add_pass(dense, internal::pass_plan(c, best), Bytes(best.estimate.resident));
  return {std::move(dense), c.selection->block, c.selection->keep, c.round_grain()};
}

}  // namespace

DenseGradWResult plan_dense_grad_w(const Problem& problem, const device::Machine& machine,
                                   const DenseGradWOptions& options) {
  const DefaultFloatMode mode;
  check_search(problem, machine, options);
  const internal::DenseCase c{
      .product = dense_product(problem, Pass::GradW),
      .groups = 1,
      .machine = machine,
      .kernel = dense_kernel(machine, problem.data_type, DataType::Float),
      .selection = internal::DenseSelection{problem.block, kept_places(problem, machine, options),
                                            1 - problem.density}};
  const double share = options.available_memory_proportion;
  const internal::DenseSearch found =
      internal::search_dense(c, {internal::temp_bound(machine, share), machine.tile_memory.value});
  if (found.best) return {plan_of(c, *found.best), {}};
  return {std::nullopt,
          fmt::format("no plan for the search of {} largest gradients of {} x {}: {}; use more "
                      "tiles, a smaller batch or larger blocks",
                      options.places, problem.size.x, problem.size.y,
                      internal::too_small_text(machine, share, found.least_bytes))};
}

}  // namespace tessera::planner
