#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/pass_steps.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/codelets/cost/dense_cycles.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan_cost.hpp"

namespace tessera::planner {

// The sizes of a dense product, in elements: [rows][inner] times [inner][columns]. Also used for
// counts of parts.
struct ProductShape {
  std::int64_t rows = 1, inner = 1, columns = 1;

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
  std::int64_t product() const { return rows * inner * columns; }
};

// One of the two operands of a dense product.
enum class Side { Left, Right };

// The operands of a pass as a dense product.
//   Fwd    Q  = R * S                 GradA  dS = transpose(R) * dQ
//   GradW  dR = dQ * transpose(S)
struct PassProduct {
  Pass pass = Pass::Fwd;
  ProductShape size;  // of one group
  // True: the caller's array is the transposed operand, so a tile transposes its slice.
  bool left_transposed = false, right_transposed = false;

  friend bool operator==(const PassProduct&, const PassProduct&) = default;
};

// Returns the product that a pass is if R is dense.
PassProduct dense_product(const Problem& problem, Pass pass);

// The plan of one dense pass. A round multiplies one range of rows with one range of columns; the
// rounds follow each other, and each uses all parts. Range i of a dimension in a round is
// share_of(size of the round, grain, parts, i), and round i is share_of(size, 1, rounds, i).
struct DensePassPlan {
  PassProduct product;
  ProductShape rounds;            // inner is always 1
  ProductShape parts;             // tiles of one group
  ProductShape grain;             // never cut
  Side weights = Side::Right;     // the operand that the units hold; the other one is the field
  Side neighbours = Side::Right;  // the operand that neighbouring tiles have in common
  PassCost cost;                  // of all rounds

  friend bool operator==(const DensePassPlan&, const DensePassPlan&) = default;
};

// The plan of a layer whose R is dense: no buckets and no meta-information. Every operand is
// spread evenly over all tiles of the machine before a pass, so every tile receives what it needs.
struct DensePlan {
  DataType data_type = DataType::Half;
  DataType partials_type = DataType::Half;
  std::int64_t groups = 1;
  std::vector<DensePassPlan> passes;  // in the order Fwd, GradA, GradW
  PlanCost cost;  // `resident` is that of the pass with the largest even shares and results

  friend bool operator==(const DensePlan&, const DensePlan&) = default;

  // Returns the plan of the pass, or nullptr if it was not planned.
  const DensePassPlan* find(Pass pass) const;
};

// Everything that a caller can choose about a dense plan.
struct DenseOptions {
  // The share of a tile's memory that temporary data may take, in (0, 1].
  double available_memory_proportion = 0.6;

  // The type of the sums: float, or half for halves. Empty: the fastest one, which is half for
  // halves and float for all others. The published dense runs use that, too.
  std::optional<DataType> partials_type;
};

// The plan, or the reason why there is none.
struct DensePlanResult {
  std::optional<DensePlan> plan;
  std::string reason;            // empty if there is a plan
  std::int64_t evaluations = 0;  // partitions whose cost was computed
};

// Plans the passes of a problem with all of R, whatever its block, density and type of sums. Each
// pass has the fewest cycles of all partitions, orders and roles of the operands; among these the
// least temporary memory. Rounds are tried if memory asks for them. Throws Error{InvalidArgument}
// for an invalid problem, machine or option. Takes milliseconds. Thread-safe.
DensePlanResult plan_dense(const Problem& problem, const device::Machine& machine,
                           const DenseOptions& options = {});

// As plan_dense(), but returns only the plan and throws Error{NoSolution} with the reason if there
// is none.
DensePlan plan_dense_or_throw(const Problem& problem, const device::Machine& machine,
                              const DenseOptions& options = {});

// Returns the dense kernel of a machine for these types.
codelets::DenseKernel dense_kernel(const device::Machine& machine, DataType data_type,
                                   DataType partials_type);

// Returns the number of tiles that send to a tile which needs `bytes` of an operand of `all` bytes
// that is spread evenly over the machine; 0 on a machine of one tile.
std::int64_t even_spread_senders(const device::Machine& machine, std::int64_t bytes,
                                 std::int64_t all);

// Returns the steps of a dense pass, for the table of steps.
PassForm dense_form(const DensePassPlan& plan, const DensePlan& layer,
                    const device::Machine& machine);

// Returns for example "128 x 64 x 16".
std::string to_string(const ProductShape& shape);

// Returns the plan as text: each pass with its partition and its terms, one line each.
std::string to_string(const DensePlan& plan);

}  // namespace tessera::planner
