#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/sparse/restrict.hpp"

namespace tessera::study {

// The sides of the square blocks that a layer is compared in.
inline constexpr std::int64_t kBlockSides[] = {1, 4, 8, 16};

// The largest batch that a verdict proposes.
inline constexpr std::int64_t kLargestBatch = 1 << 20;

// The way in which costs come about. Planned and static ones are modelled cycles, of patterns that
// may change and of patterns that stay; the others are seconds on this computer.
enum class Origin { Planned, Static, Forecast, Measured };

// Returns "modelled", "modelled", "forecast" or "measured".
std::string to_string(Origin origin);

// One form in which R can be stored: blocks of a shape, with a random pattern of some density or
// with a known pattern.
struct Form {
  BlockShape block;
  double density = 1;                            // share of the blocks; not read with a pattern
  const sparse::Csr<double>* pattern = nullptr;  // elements whose values are all 1
  std::int64_t batch = 0;                        // 0: that of the layer
};

// The cost of one form of a layer.
struct Cost {
  std::optional<double> value;                  // of all passes: cycles or seconds
  std::vector<std::pair<Pass, double>> passes;  // the same, pass by pass, where it is known
  double spread = 0;                            // of a measured time, as a share of it
  std::string note;    // the relaxation, the parts of the batch, or the reason for having no cost
  std::string kernel;  // of a dense product: of this computer, or its sums

  BlockShape block;
  bool is_dense = false;      // all of R; it has no blocks
  double density = 1;         // share of the blocks that are stored
  std::int64_t blocks = 0;    // that a pattern occupies; 0 if only the density is known
  double filled_percent = 0;  // share of the stored elements that belong to the pattern

  std::int64_t tiles = 0;  // that a plan uses
  Bytes temporary;         // that a plan takes on a tile
  Bytes tile_memory;       // of the fullest tile
  std::optional<planner::Plan> plan;

  std::string name() const;  // "4x4" or "dense"
  bool is_below(double limit) const { return value && *value < limit; }
};

// Returns the cheapest of some costs, or nullptr if none has a value.
const Cost* cheapest_of(const std::vector<Cost>& costs);

// The finding of one look at a density.
struct Look {
  bool pays = false;
  Cost cost;               // without a value: it is not known, or nothing fits
  std::int64_t reach = 0;  // steps of density up to which the same plan pays, too
};

// Costs of the forms of one layer. One thread may use a model at a time.
class CostModel {
 public:
  explicit CostModel(const Problem& layer) : layer_(layer) {}
  virtual ~CostModel() = default;

  virtual Origin origin() const = 0;

  // Returns the cost of a form. A form that no kernel has, or that does not fit, has a note
  // instead.
  virtual Cost sparse(const Form& form) = 0;

  // Returns the cost of the dense layer with this batch; 0: that of the layer.
  virtual Cost dense(std::int64_t batch = 0) = 0;

  // Returns the cost of a form in the cheapest way to run it: with blocks stored as the elements
  // that they are made of, or with the batch in parts where it has no plan as a whole.
  virtual Cost cheapest(const Form& form) { return sparse(form); }

  // Returns whether a random pattern of a form costs less than `limit`, as cheapest() runs it.
  virtual Look look(const Form& form, double limit);

  // Returns steps of density up to which a form is known to cost less than `limit` without a look.
  // No value: looks tell nothing about higher densities.
  virtual std::optional<std::int64_t> known_reach(const Form&, double) { return {}; }

  // Lets searches of break-even densities begin at a cost of the layer, which saves most of their
  // time.
  virtual void begin_at(const Cost&) {}

  // Returns the forms beside `own` in which the same layer may be stored.
  virtual std::vector<Form> alternatives(const Form& own) const;

  // Returns the cost of a form if it is below `limit`; it may be left empty if it is not.
  virtual Cost below(const Form& form, double) { return sparse(form); }

  // Returns the seconds of a cost.
  virtual double seconds(double cost) const { return cost; }

  // Returns how far two costs may be apart without one of them being the smaller, as a share: the
  // error that is stated for costs of this origin. Measured costs have their spreads.
  double error(const Cost& a, const Cost& b) const;

  report::CostUnit unit() const;
  const Problem& layer() const { return layer_; }

  // Returns the layer in a form.
  Problem problem(const Form& form) const;

 private:
  Problem layer_;
};

// Returns the costs of a layer in square blocks of all sides: of its pattern, or of random patterns
// of one density.
std::vector<Cost> in_square_blocks(CostModel& model, const Form& own);

// Returns the number of blocks of a shape in a layer.
double places_of(const Problem& layer, BlockShape block);

// Returns the number of blocks that a form occupies: counted for a pattern, else that of its
// density.
double blocks_of(const Problem& layer, const Form& form);

}  // namespace tessera::study
