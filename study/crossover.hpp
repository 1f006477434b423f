#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/study/cost_model.hpp"
#include "tessera/study/tables.hpp"
#include "tessera/study/target.hpp"

namespace tessera::study {

// The layer and the blocks to compare with dense.
struct CrossoverRequest {
  std::vector<BlockShape> blocks;
  std::optional<sparse::Csr<double>> pattern;  // of a file, with values 1; empty: none was given
  bool with_curve = false;                     // the curve of modelled costs is wanted, too
};

// The densities up to which a sparse layer costs less than the dense one, by block shape.
class Crossover {
 public:
  Crossover(CrossoverRequest request, const Problem& layer, Target target);

  // Adds the crossover of the next block shape, or nothing if the study is stopped meanwhile.
  void add();

  // Returns the next block shape, or nullptr after the last one.
  const BlockShape* next() const;
  std::int64_t done() const { return std::ssize(crossings_); }

  bool has_cost() const;
  Report report() const;
  std::string text() const;

 private:
  using Curve = std::vector<std::pair<double, Cost>>;

  struct Crossing {
    BlockShape block;
    double density = 0;
    Cost there;                   // its note is the reason why even the lowest density has none
    std::optional<Cost> pattern;  // of the file
    Curve curve;

    // The same for a pattern that stays.
    std::optional<double> fixed_density;  // no value: no static kernel has this block
    // The density found is that of the largest pattern tried, and costs less than dense.
    bool fixed_is_bound = false;
    std::optional<Cost> fixed_pattern;
    Curve fixed_curve;

    std::string name() const { return Cost{.block = block}.name(); }
  };

  bool is_measured() const { return target_.is_host(); }
  Crossing measured_crossing(BlockShape block, double dense);
  Crossing planned_crossing(BlockShape block, double dense);
  void add_fixed(BlockShape block, double dense, Crossing& crossing);
  bool ends_at_limit(BlockShape block, double found) const;
  bool has_bound() const;
  Cell cost_cell(const Cost& cost) const;
  Column cost_column(const std::string& prefix, const std::string& title, int width) const;
  Table blocks_table() const;
  std::vector<Cell> row_of(const Crossing& c) const;
  Table curve_table() const;
  std::string dense_note() const;
  std::string pattern_verdict() const;
  std::string fixed_verdict() const;
  std::string verdict() const;

  CrossoverRequest request_;
  Target target_;
  std::unique_ptr<CostModel> model_, fixed_;
  Cost dense_;
  std::vector<Crossing> crossings_;
};

}  // namespace tessera::study
