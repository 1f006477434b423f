#include "tessera/tools/options/dense_verdict.hpp"

#include <fmt/format.h>

namespace tessera::tools {

std::string dense_note(const planner::Plan& plan, const planner::Options& options) {
  const bool was_open = !options.constraints.use_dense;
  const std::string sparse = ": planConstraints.useDense false keeps R sparse";
  if (plan.dense)
    return "R dense, without buckets" +
           (was_open ? ", because no plan with buckets that fits costs fewer cycles" + sparse : "");
  if (plan.use_dense)
    return fmt::format("R dense in {}x{} blocks{}", plan.block.rows, plan.block.cols,
                       was_open ? sparse : "");
  return "";
}

std::string verdict_line(const report::DenseComparison& comparison) {
  return fmt::format("verdict    {}\n", verdict_text(comparison));
}

}  // namespace tessera::tools
