#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "tessera/device/machine.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/study/cost_model.hpp"

namespace tessera::study {

// The most blocks of a pattern that a study draws.
inline constexpr std::int64_t kMostStaticBlocks = std::int64_t{1} << 20;

// Patterns that are drawn once for all batches, passes and machines; what their cuts have in common
// is counted once. One thread may use it at a time.
class DrawnPatterns {
 public:
  // Returns the planner of a random pattern of the problem's blocks and density.
  planner::StaticPlanner& drawn(const Problem& problem, std::int64_t blocks);

 private:
  // The planner has views of the arrays, so a pattern keeps its place in memory.
  struct Drawn {
    sparse::Csr<char> pattern;  // without values
    planner::StaticPlanner planner;
  };

  std::list<Drawn> drawn_;  // the last used first
};

// Modelled cycles of patterns that are known when the layer is planned, and stay. A random one has
// the cost of a good cut (StaticPlanner::quick_cost); rows and columns are rounded up to whole
// blocks. More than kMostStaticBlocks blocks and blocks without a static kernel have no cost.
// Models with the same `patterns` share them.
class StaticModel : public CostModel {
 public:
  StaticModel(const Problem& layer, const device::Machine& machine,
              const planner::StaticOptions& options,
              std::shared_ptr<DrawnPatterns> patterns = std::make_shared<DrawnPatterns>())
      : CostModel(layer), machine_(machine), options_(options), patterns_(std::move(patterns)) {}

  Origin origin() const override { return Origin::Static; }
  Cost sparse(const Form& form) override;
  Cost dense(std::int64_t batch = 0) override;

  // Prices nothing where even the floor of the cost is too high.
  Look look(const Form& form, double limit) override;

  double seconds(double cost) const override { return cost / machine_.clock_hz; }

 private:
  device::Machine machine_;
  planner::StaticOptions options_;
  std::shared_ptr<DrawnPatterns> patterns_;
};

}  // namespace tessera::study
