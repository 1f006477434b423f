// Plans and costs do not depend on the floating-point mode of the caller: another rounding, or
// denormal numbers that are taken for 0.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/planner/dense_grad_w.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/plan_bounds.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/planner/sparse_below.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/tests/planner/static_pattern.hpp"
#include "tessera/tests/support/other_float_mode.hpp"

namespace tessera::planner {
namespace {

Problem layer_of(Random& random) {
  return {
      .size = {1, 16 * (2 + random.below(20)), 16 * (2 + random.below(20)), 1 + random.below(60)},
      .block = random.below(2) == 0 ? BlockShape{1, 1} : BlockShape{4, 4},
      .density = 0.02 + 0.3 * random.unit(),
      .data_type = DataType::Half,
      .grad_a = true,
      .grad_w = true};
}

using Answer = std::function<std::string()>;

std::vector<Answer> answers_about(const Problem& p, const device::Machine& machine) {
  const Plan planned = plan_or_throw(p, machine, sparse_options());
  const auto cycles = [](Cycles c) { return std::to_string(c.value); };
  return {
      [=] { return plan_to_json({p, machine, {}, plan_or_throw(p, machine)}); },
      [=] { return to_string(plan_dense_or_throw(p, machine)); },
      [=] { return cycles(plan_floor(p, machine, {}, 20).cycles); },
      [=] { return to_json(explain(p, machine, sparse_options(), nullptr, planned)); },
      [=] {
        const auto below = sparse_plan_below(planned.cost.cycles * 2, p, machine, {}, nullptr);
        return below ? to_string(*below) : "none";
      },
      [=] {
        const Cycles limit(planned.cost.cycles.value * 3 / 2);
        return std::to_string(highest_step_like(planned, limit, p, machine, sparse_options(), 1));
      },
      [=] {
        Problem large = p;
        large.size.z = 100000;
        return to_text(explain_no_fit(large, machine, sparse_options()));
      },
      [=] {
        const NetworkSpec spec{
            .layers = {{p.size.x, p.size.y, {}, p.density}, {p.size.y, p.size.x, {}, p.density}},
            .batch = p.size.z};
        const NetworkPlan network = plan_network(spec, machine);
        return to_string(network) + to_string(network.plans[0]) + to_string(network.plans[1]);
      },
      [=] { return to_string(plan_dense_grad_w(p, machine, {.places = 7}).plan.value().dense); }};
}

TEST(FloatMode, OfTheCallerChangesNoPlan) {
  Random random(3);
  for (int i = 0; i < 12; ++i) {
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 8 + random.below(60);
    const Problem p = layer_of(random);
    const std::vector<Answer> answers = answers_about(p, machine);
    for (std::size_t a = 0; a < answers.size(); ++a) {
      const std::string expected = answers[a]();
      std::string got;
      {
        const test::OtherFloatMode mode;
        got = answers[a]();
        EXPECT_TRUE(test::OtherFloatMode::is_on());
      }
      EXPECT_EQ(got, expected) << "answer " << a << " about " << to_string(p);
    }
  }
}

TEST(FloatMode, OfTheCallerChangesNoStaticPlan) {
  Random random(4);
  for (int i = 0; i < 12; ++i) {
    const auto m = random_matrix(random, 4 + random.below(30), 4 + random.below(30), 4, 0.3);
    if (m.blocks() == 0) continue;
    const Problem p = problem_of(m, 1 + random.below(60));
    const auto machine = small_machine(4 + random.below(60));
    const auto answer = [&] {
      const StaticPlan plan = plan_static(p, view_of(m), machine).plan.value();
      const StaticPlan theirs = plan_static_as_poplibs(p, view_of(m), machine).plan.value();
      const StaticBounds bounds = static_bounds(p, view_of(m), machine);
      return to_json(plan) + to_json(theirs) +
             std::to_string(count_static_cost(plan, p, view_of(m), machine).cycles.value) +
             std::to_string(bounds.kernel.value) + std::to_string(bounds.bytes.value) +
             std::to_string(bounds.waiting.value) +
             std::to_string(static_floor(p, machine, m.blocks()).value);
    };
    const std::string expected = answer();
    const test::OtherFloatMode mode;
    EXPECT_EQ(answer(), expected);
  }
}

}  // namespace
}  // namespace tessera::planner
