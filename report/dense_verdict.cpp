#include "tessera/report/dense_verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/report/internal/report_text.hpp"

namespace tessera::report {
namespace {

double ratio(Cycles a, Cycles b) {
  return double(a.value) / double(std::max<std::int64_t>(b.value, 1));
}

// Returns how many times fewer or more cycles than dense sparse takes.
std::string beside_dense(Cycles sparse, Cycles dense) {
  return sparse < dense ? fmt::format("{:.1f}x faster than", ratio(dense, sparse))
                        : fmt::format("{:.1f}x as many as", ratio(sparse, dense));
}

std::string first_pass(const DenseComparison& c) {
  const auto [pass, cycles] = c.sparse.front();
  const std::string name = c.sparse_name.empty() ? "" : c.sparse_name + " ";
  const std::string head =
      fmt::format("{}{} {} cycles", name, to_string(pass), internal::grouped(cycles.value));
  if (!c.dense.plan) return head;
  const Cycles dense = c.dense_cycles(pass);
  return fmt::format("{}, {} dense ({})", head, beside_dense(cycles, dense),
                     internal::grouped(dense.value));
}

std::string whole_step(const DenseComparison& c) {
  if (!c.sparse_wins())
    return fmt::format("whole step {:.1f}x as many", ratio(c.sparse_cycles(), c.dense_cycles()));
  const bool first_wins = c.sparse.front().cycles < c.dense_cycles(c.sparse.front().pass);
  return fmt::format("whole step {:.1f}x{}", ratio(c.dense_cycles(), c.sparse_cycles()),
                     first_wins ? "" : " faster");
}

}  // namespace

std::vector<PassCycles> pass_cycles(const planner::PlanCost& cost) {
  std::vector<PassCycles> cycles;
  for (const planner::PassCost& pass : cost.passes) cycles.push_back({pass.pass, pass.cycles()});
  return cycles;
}

std::string representation_name(const planner::Plan& plan) {
  if (plan.dense) return "R dense";
  return plan.use_dense ? "R dense in " + internal::block_name(plan.block) : "";
}

Cycles DenseComparison::dense_cycles(Pass pass) const {
  const planner::PassCost* cost = dense.plan ? dense.plan->cost.find(pass) : nullptr;
  TESSERA_ASSERT(cost != nullptr);
  return cost->cycles();
}

Cycles DenseComparison::sparse_cycles() const {
  Cycles sum;
  for (const PassCycles& pass : sparse) sum += pass.cycles;
  return sum;
}

Cycles DenseComparison::dense_cycles() const {
  Cycles sum;
  for (const PassCycles& pass : sparse) sum += dense_cycles(pass.pass);
  return sum;
}

bool DenseComparison::is_whole_step() const {
  return dense.plan && sparse.size() == dense.plan->cost.passes.size();
}

bool DenseComparison::sparse_wins() const {
  return !dense.plan || sparse_cycles() < dense_cycles();
}

std::vector<std::string> verdict_parts(const DenseComparison& c) {
  TESSERA_ASSERT(!c.sparse.empty());
  std::vector<std::string> parts;
  if (c.dense.plan) {
    parts.push_back((c.sparse_wins() ? "" : "dense wins: ") + first_pass(c));
    if (c.sparse.size() > 1 && c.is_whole_step()) parts.push_back(whole_step(c));
  } else {
    parts = {"only sparse fits: " + first_pass(c), c.dense.reason};
  }
  if (c.pays_up_to) parts.push_back(fmt::format("pays up to density {:.3g}", *c.pays_up_to));
  parts.back() += " (modelled)";
  return parts;
}

std::string verdict_text(const DenseComparison& comparison) {
  return fmt::format("{}", fmt::join(verdict_parts(comparison), "; "));
}

}  // namespace tessera::report
