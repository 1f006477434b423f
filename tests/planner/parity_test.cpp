#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/planner/planner.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

// PopSparse's own plans (PopLibs 3.4), made with the figures of GC200 and its defaults. With
// poplibs_parity ours must equal them in every recorded number.
namespace tessera::planner {
namespace {

device::Machine gc200() {
  device::Machine m = device::machine_preset("gc200");
  return m;
}

std::string method_name(const Plan& plan) {
  if (plan.fwd == Method::ElementFwd) return "elem";
  return plan.grad_w == Method::BlockGradWAmp ? "amp+Wamp" : "amp+W";
}

std::string cycles_text(const Plan& plan, Pass pass) {
  const PassCost* cost = plan.cost.find(pass);
  return cost == nullptr ? "" : std::to_string(cost->cycles().value);
}

std::string retry_text(Bytes bound) {
  const double tile = static_cast<double>(device::machine_preset("gc200").tile_memory.value);
  const double proportion = static_cast<double>(bound.value) / tile;
  return proportion > 2 ? "inf" : proportion > 1 ? "1.2" : "0.6";
}

void expect_equal(const RecordedPlan& row, const PlanResult& result) {
  ASSERT_EQ(result.has_plan, row.found());
  if (!row.found()) return;
  const Plan& p = result.plan;
  EXPECT_EQ(p.partition, (Dims{1, row.number("X"), row.number("Y"), row.number("Z")}));
  EXPECT_EQ(method_name(p), row.text("method"));
  if (p.cost.find(Pass::GradW) != nullptr) {
    EXPECT_EQ(p.grad_w_exchange_buckets ? "buckets" : "inputs", row.text("gradw_exchange"));
  }
  EXPECT_EQ(p.nonzeros_per_bucket, row.number("nz_bucket"));
  EXPECT_EQ(p.fwd_meta_words.value, row.number("mi_fwd"));
  EXPECT_EQ(p.cost.cycles.value, row.number("cycles_total"));
  EXPECT_EQ(p.cost.temp.value, row.number("temp_bytes"));
  EXPECT_EQ(cycles_text(p, Pass::Fwd), row.text("fwd_cyc"));
  EXPECT_EQ(cycles_text(p, Pass::GradA), row.text("grada_cyc"));
  EXPECT_EQ(cycles_text(p, Pass::GradW), row.text("gradw_cyc"));
  EXPECT_EQ(retry_text(result.memory_bound), row.text("mem_retry"));
}

TEST(Parity, AllFourHundredPlansEqualPopSparses) {
  const std::vector<RecordedPlan> rows = read_recorded_plans();
  ASSERT_EQ(rows.size(), 400u);
  for (const RecordedPlan& row : rows) {
    SCOPED_TRACE(row.text("id"));
    const PlanResult r = plan(row.problem(), gc200(), parity_options());
    expect_equal(row, r);
  }
}

}  // namespace
}  // namespace tessera::planner
