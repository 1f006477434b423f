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

// The most blocks for which studies make a static plan, which then takes up to a second.
inline constexpr std::int64_t kMostStaticBlocks = std::int64_t{1} << 20;

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
  // stays. Empty for measured costs, because a host layer plans every pattern. A pattern with more
  // than kMostStaticBlocks blocks, or whose blocks have no static kernel, has no cost.
  virtual std::optional<FormCost> fixed(BlockShape, double) { return {}; }

  // Returns the same for a pattern of elements, with values 1.
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
// arguments. Plans are always sparse. Throws the errors of make_options(), and
// Error{InvalidArgument} if a constraint asks for dense.
std::unique_ptr<CostSource> planned_costs(const LayerArguments& arguments, const Problem& problem,
                                          const device::Machine& machine);

// Returns the measured runs of a layer on this computer; `spread` is that of HostStudy.
std::unique_ptr<CostSource> measured_costs(const LayerArguments& arguments, double spread);

}  // namespace tessera::tools
