#include "tessera/planner/internal/check_plan.hpp"

#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/planner/internal/candidate.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/dense_search.hpp"
#include "tessera/planner/internal/json_archive.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner::internal {
namespace {

void require(bool holds, const Place& place, const std::string& value, std::string_view legal) {
  if (!holds) throw_bad(place, value, legal);
}

void require_equal(std::int64_t value, std::int64_t legal, const Place& place,
                   std::string_view reason) {
  require(value == legal, place, fmt::format("{}", value), fmt::format("{}, {}", legal, reason));
}

void check_method(Method method, std::initializer_list<Method> legal, const Place& place) {
  std::string names;
  for (const Method m : legal) {
    if (m == method) return;
    names += (names.empty() ? "" : " or ") + codelets::to_string(m);
  }
  throw_bad(place, codelets::to_string(method), names + " for this block");
}

void check_methods(const Plan& plan, const Place& place) {
  const Place grad_a = place.member("grad_a"), grad_w = place.member("grad_w");
  if (plan.block.is_element()) {
    check_method(plan.fwd, {Method::ElementFwd}, place.member("fwd"));
    check_method(plan.grad_a, {Method::ElementTranspose, Method::ElementGradA}, grad_a);
    check_method(plan.grad_w, {Method::ElementGradW}, grad_w);
  } else {
    check_method(plan.fwd, {Method::BlockFwd}, place.member("fwd"));
    check_method(plan.grad_a, {Method::BlockTranspose}, grad_a);
    check_method(plan.grad_w, {Method::BlockGradW, Method::BlockGradWAmp}, grad_w);
  }
}

void check_blocks(const Plan& plan, const Problem& problem, const Place& place) {
  const Place block = place.member("block"), grain = place.member("grain");
  if (!plan.use_dense) {
    require(problem.block.rows % plan.block.rows == 0, block.member("rows"),
            fmt::format("{}", plan.block.rows),
            fmt::format("a divisor of {}, the rows of the problem's block", problem.block.rows));
    require(problem.block.cols % plan.block.cols == 0, block.member("cols"),
            fmt::format("{}", plan.block.cols),
            fmt::format("a divisor of {}, the columns of the problem's block", problem.block.cols));
  }
  require_equal(plan.grain.g, 1, grain.member("g"), "groups are not joined");
  require_equal(plan.grain.x, plan.block.rows, grain.member("x"), "the block's rows");
  require_equal(plan.grain.y, plan.block.cols, grain.member("y"), "the block's columns");
}

// Checks that the planner tries this combination for the request. Runs after the checks of the
// single fields, whose messages say more.
void check_candidate(const Plan& plan, const Request& request, const Place& place) {
  for (const Candidate& c : candidates(request.problem, request.machine, request.options))
    if (c.fwd == plan.fwd && c.grad_a == plan.grad_a && c.grad_w == plan.grad_w &&
        c.block == plan.block && c.grain == plan.grain &&
        c.exchange_buckets == plan.grad_w_exchange_buckets && (!c.dense || plan.use_dense))
      return;
  throw_bad(place,
            fmt::format("{}, {}, {}, grain {}, {}", codelets::to_string(plan.fwd),
                        codelets::to_string(plan.grad_a), codelets::to_string(plan.grad_w),
                        to_string(plan.grain),
                        plan.grad_w_exchange_buckets ? "buckets travel" : "operands travel"),
            "a combination that is tried for this layer");
}

void check_share(std::int64_t parts, std::int64_t size, std::int64_t grain, const Place& place) {
  const std::int64_t grains = ceil_div(size, grain);
  require(is_share_count(grains, parts), place, fmt::format("{}", parts),
          fmt::format("a count that cuts {} grains without an empty part", grains));
}

void check_pin(std::optional<std::int64_t> pin, std::int64_t parts, const Place& place) {
  if (pin) require_equal(parts, *pin, place, "as the options pin it");
}

void check_tiles(const Dims& parts, const device::Machine& machine, const Place& place) {
  std::int64_t tiles = 1;
  for (const std::int64_t count : {parts.g, parts.x, parts.y, parts.z}) {
    // Cannot overflow: the product so far is at most 2^20 and the count below 2^31.
    tiles *= count;
    require(tiles <= machine.tiles, place, to_string(parts),
            fmt::format("1..{} tiles in all", machine.tiles));
  }
}

void check_partition(const Plan& plan, const Request& request, const Place& place) {
  const Dims& parts = plan.partition;
  const Dims size = request.problem.size_in_blocks();
  const PlanConstraints& pins = request.options.constraints;
  require_equal(parts.g, size.g, place.member("g"), "a part for each group");
  check_tiles(parts, request.machine, place);
  check_share(parts.x, size.x, plan.grain.x, place.member("x"));
  check_share(parts.y, size.y, plan.grain.y, place.member("y"));
  check_share(parts.z, size.z, plan.grain.z, place.member("z"));
  check_pin(pins.x, parts.x, place.member("x"));
  check_pin(pins.y, parts.y, place.member("y"));
  check_pin(pins.z, parts.z, place.member("z"));
}

// Refuses buckets that no tile could hold, because a loaded plan allocates its buckets.
void check_buckets(const Plan& plan, const Request& request, const Place& place) {
  if (request.options.poplibs_parity) return;  // PopLibs bounds temporary memory only
  const std::int64_t values = plan.nonzeros_per_bucket * bytes_of(request.problem.data_type);
  const std::int64_t words = plan.fwd_meta_words.value + plan.grad_a_meta_words.value;
  const std::int64_t bytes = values + words * request.machine.word_bits / 8;
  const std::int64_t tile = request.machine.tile_memory.value;
  require(bytes <= tile, place, fmt::format("{} bytes of values and words", bytes),
          fmt::format("0..{}, a tile's memory", tile));
}

void check_passes(const PlanCost& cost, const Problem& problem, const Place& place) {
  // With so few terms of at most 2^53 each, no sum overflows 64 bits.
  constexpr std::size_t kMostTerms = 100;
  const auto passes = passes_of(problem);
  require_equal(std::ssize(cost.passes), std::ssize(passes), place.member("length"),
                "the passes of the problem");
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const PassCost& pass = cost.passes[i];
    require(pass.pass == passes[i], place.item(i).member("pass"), to_string(pass.pass),
            to_string(passes[i]));
    require(pass.terms.size() <= kMostTerms, place.item(i).member("terms.length"),
            fmt::format("{}", pass.terms.size()), fmt::format("0..{}", kMostTerms));
  }
}

void check_totals(const PlanCost& cost, const Place& place) {
  PlanCost sums;
  for (const PassCost& pass : cost.passes) sums.add(pass);
  require_equal(cost.cycles.value, sums.cycles.value, place.member("cycles"),
                "the sum of the terms");
  require_equal(cost.temp.value, sums.temp.value, place.member("temp"), "the largest of the terms");
}

void check_at(const Plan& plan, const Request& request, const Place& place);

// Checks the second layout, which is a plan of the transposed layer and has no second layout
// itself.
void check_backward(const Plan& plan, const Request& request, const Place& place) {
  if (plan.backward.empty()) return;
  require(plan.backward.size() == 1 && request.problem.grad_a, place,
          fmt::format("{} plans", plan.backward.size()), "none, or one for GradA");
  const Plan& other = plan.backward.front();
  const Place item = place.item(0);
  require(other.backward.empty(), item.member("backward"), "a list of plans", "empty");
  const auto [forward_problem, transposed_problem] =
      two_problems(request.problem, plan.runs_transposed(Pass::GradW));
  check_at(other, {transposed_problem, request.machine, request.options}, item);
}

void check_round_parts(const DensePassPlan& pass, const Place& place) {
  const ProductShape &size = pass.product.size, &rounds = pass.rounds;
  require(rounds.inner == 1 && rounds.rows <= size.rows && rounds.columns <= size.columns,
          place.member("rounds"), to_string(rounds), "ranges of rows and columns, none empty");
  require(rounds.product() <= kMostDenseRounds, place.member("rounds"), to_string(rounds),
          fmt::format("1..{} in all", kMostDenseRounds));
  const Place parts = place.member("parts");
  check_share(pass.parts.rows, ceil_div(size.rows, rounds.rows), pass.grain.rows,
              parts.member("rows"));
  check_share(pass.parts.inner, size.inner, pass.grain.inner, parts.member("inner"));
  check_share(pass.parts.columns, ceil_div(size.columns, rounds.columns), pass.grain.columns,
              parts.member("columns"));
}

// Returns the plan with the cuts and the cost of `plan`, and everything else as the request has it.
Plan with_cuts_of(const Plan& plan, const Request& request) {
  const Problem& problem = request.problem;
  const codelets::DenseKernel kernel =
      dense_kernel(request.machine, problem.data_type, problem.partials_type);
  DensePlan dense{.data_type = problem.data_type,
                  .partials_type = problem.partials_type,
                  .groups = problem.size.g,
                  .passes = plan.dense->passes,
                  .cost = plan.cost};
  for (std::size_t i = 0; i < dense.passes.size(); ++i) {
    DensePassPlan& pass = dense.passes[i];
    pass.product = dense_product(problem, plan.cost.passes[i].pass);
    pass.grain = dense_grain(kernel, pass.weights);
    pass.cost = plan.cost.passes[i];
  }
  return layer_plan(std::move(dense));
}

void check_dense(const Plan& plan, const Request& request, const Place& place) {
  const Place dense = place.member("dense");
  require(may_have_no_buckets(request.options), dense, "a plan",
          "none, because the options ask for buckets");
  check_passes(plan.cost, request.problem, place.member("cost.passes"));
  check_totals(plan.cost, place.member("cost"));
  require_equal(std::ssize(plan.dense->passes), std::ssize(plan.cost.passes),
                dense.member("passes.length"), "the passes of the problem");
  const Plan expected = with_cuts_of(plan, request);
  require(expected == plan, dense, "a plan of another layer", "the layer's own, with its cost");
  for (std::size_t i = 0; i < plan.dense->passes.size(); ++i) {
    const DensePassPlan& pass = plan.dense->passes[i];
    const Place item = dense.member("passes").item(i);
    check_round_parts(pass, item);
    check_tiles({request.problem.size.g, pass.parts.rows, pass.parts.inner, pass.parts.columns},
                request.machine, item.member("parts"));
  }
}

void check_at(const Plan& plan, const Request& request, const Place& place) {
  if (plan.dense) return check_dense(plan, request, place);
  check_methods(plan, place);
  check_blocks(plan, request.problem, place);
  check_candidate(plan, request, place);
  check_partition(plan, request, place.member("partition"));
  check_buckets(plan, request, place.member("bucket"));
  check_passes(plan.cost, request.problem, place.member("cost.passes"));
  check_totals(plan.cost, place.member("cost"));
  check_backward(plan, request, place.member("backward"));
}

}  // namespace

void check_plan(const Plan& plan, const Request& request, std::string_view where) {
  check_at(plan, request, {where, "plan"});
}

}  // namespace tessera::planner::internal
