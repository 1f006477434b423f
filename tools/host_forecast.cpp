#include "tessera/tools/host_forecast.hpp"

#include "tessera/host/cpu.hpp"
#include "tessera/tools/inputs.hpp"

namespace tessera::tools {

report::HostPlan host_plan(const Problem& problem,
                           const std::function<double(BlockShape)>& blocks_as) {
  return report::plan_on_host(problem, host::read_host_cpu(),
                              host::find_host_rates(host_rates_path()), blocks_as);
}

double host_random_seconds(Problem problem, BlockShape block, double density) {
  problem.block = block;
  problem.density = density;
  const Dims size = problem.size_in_blocks();
  const double places = double(size.x / block.rows) * double(size.y / block.cols);
  return host_plan(problem,
                   [&](BlockShape form) { return form == block ? density * places : places; })
      .ways.front()
      .seconds();
}

}  // namespace tessera::tools
