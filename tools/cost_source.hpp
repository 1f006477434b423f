#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/layer_arguments.hpp"
#include "tessera/tools/static_study.hpp"

namespace tessera::tools {

// The cost of one form of a layer.
struct FormCost {
  std::optional<double> cost;  // of all passes: modelled cycles or measured seconds
  double spread = 0;           // of a measured time, as a share of it
  std::string note;            // the reason for having no cost, or a relaxation of the request
  std::string kernel;          // of a dense product: of this computer, or the sums of a plan
  double density = 1;          // share of the blocks that are stored
  std::int64_t tiles = 0;      // that a plan uses
  Bytes temporary;             // that a plan takes on a tile
};

// Costs of forms of one layer: plans for a modelled machine, measured runs on this computer.
// One thread may use it at a time.
class CostSource {
 public:
  virtual ~CostSource() = default;

  // Returns the cost of a random pattern of blocks.
  virtual FormCost random(BlockShape block, double density) = 0;

  // Returns the same with blocks that are stored as elements where that is cheaper, and with the
  // batch in parts where it has no plan as a whole.
  virtual FormCost cheapest(BlockShape block, double density) { return random(block, density); }

  // Returns the cost of a pattern of elements, with values 1, in blocks.
  virtual FormCost pattern(const sparse::Csr<double>& ones, BlockShape block) = 0;

  // Returns the cost of a random pattern of blocks that is known when the layer is planned and
  // stays: that of a good cut (StaticStudy). Empty for measured costs, because a host layer plans
  // every pattern. A pattern with more than kMostStaticBlocks blocks, or whose blocks have no
  // static kernel, has no cost.
  virtual std::optional<FormCost> fixed(BlockShape, double) { return {}; }

  // Returns a density above which fixed() has no cost below `cost`, in steps of a thousandth.
  virtual double highest_fixed(BlockShape, double) { return 0; }

  // Returns the cost of a plan for a pattern of elements, with values 1, that stays.
  virtual std::optional<FormCost> fixed_pattern(const sparse::Csr<double>&, BlockShape) {
    return {};
  }

  // Returns the cost of the dense layer. It is computed once.
  virtual FormCost dense() = 0;

  // Returns the seconds of a cost.
  virtual double seconds(double cost) const = 0;

  virtual report::CostUnit unit() const = 0;
};

// Returns the plans of a layer on a machine, under the planner options and the cache of the
// arguments. Plans are always sparse. Sources with the same `fixed` share the patterns that it
// draws. Throws the errors of make_options(), and
// Error{InvalidArgument} if a constraint asks for dense.
std::unique_ptr<CostSource> planned_costs(
    const LayerArguments& arguments, const Problem& problem, const device::Machine& machine,
    std::shared_ptr<StaticStudy> fixed = std::make_shared<StaticStudy>());

// Returns the measured runs of a layer on this computer; `spread` is that of HostStudy.
std::unique_ptr<CostSource> measured_costs(const LayerArguments& arguments, double spread);

}  // namespace tessera::tools
