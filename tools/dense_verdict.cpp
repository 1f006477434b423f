#include "tessera/tools/dense_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::tools {
namespace {

// Returns the number with commas between thousands.
std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(std::size_t(at), ",");
  return digits;
}

double ratio(Cycles a, Cycles b) {
  return double(a.value) / double(std::max<std::int64_t>(b.value, 1));
}

std::string sparse_first(std::string_view name, Pass pass, Cycles sparse, Cycles dense) {
  const std::string pass_name = to_string(pass);
  if (sparse < dense)
    return fmt::format("{} {} {} cycles, {:.1f}x faster than dense ({})", name, pass_name,
                       grouped(sparse.value), ratio(dense, sparse), grouped(dense.value));
  return fmt::format("{} {} {} cycles, {:.1f}x as many as dense ({})", name, pass_name,
                     grouped(sparse.value), ratio(sparse, dense), grouped(dense.value));
}

}  // namespace

std::optional<planner::DensePlan> dense_baseline(const Problem& problem,
                                                 const device::Machine& machine,
                                                 const planner::Options& options) {
  return planner::plan_dense(problem, machine,
                             {.available_memory_proportion = options.available_memory_proportion})
      .plan;
}

std::string verdict_line(const DenseComparison& c) {
  TESSERA_ASSERT(!c.sparse.passes.empty() && c.sparse.passes.size() == c.dense.passes.size());
  const planner::PassCost &sparse = c.sparse.passes.front(), &dense = c.dense.passes.front();
  std::string text = "verdict    ";
  if (!c.sparse_wins()) text += "dense wins: ";
  text += sparse_first(c.sparse_name, sparse.pass, sparse.cycles(), dense.cycles());
  if (c.sparse.passes.size() > 1)
    text +=
        c.sparse_wins()
            ? fmt::format("; whole step {:.1f}x", ratio(c.dense.cycles, c.sparse.cycles))
            : fmt::format("; whole step {:.1f}x as many", ratio(c.sparse.cycles, c.dense.cycles));
  if (c.pays_up_to) text += fmt::format("; pays up to density {:.3g}", *c.pays_up_to);
  return text + " (modelled)\n";
}

}  // namespace tessera::tools
