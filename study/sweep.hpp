#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/study/cost_model.hpp"
#include "tessera/study/sweep_grid.hpp"
#include "tessera/study/tables.hpp"
#include "tessera/study/target.hpp"

namespace tessera::study {

// Compares a layer with the dense one at all points of a grid: plans of patterns that may change
// and of patterns that stay, or runs on this computer.
class Sweep {
 public:
  // Throws Error{InvalidArgument} for a figure that is unknown, given twice or not legal, for one
  // of a machine on this computer, and for too many points.
  Sweep(const Problem& layer, std::vector<SweepAxis> axes, Target target);

  std::int64_t points() const { return std::ssize(points_); }
  bool has_cost() const { return has_cost_; }

  // Adds the row of the next point. A combination of figures that is not legal, or for which there
  // is not enough memory, has a note. `change` is called with the function that changes the
  // results.
  void add(const std::function<void(const std::function<void()>&)>& change);

  Report report() const;

 private:
  struct Costs {
    Cost sparse, fixed, dense;
    bool has_fixed = false;
    double error = 0;
  };

  Costs costs_at(const SweepPoint& point);
  void use_models_of(const SweepPoint& point);
  std::vector<Cell> row_of(std::size_t at, const Costs& costs) const;
  void count(const Costs& costs);
  bool is_measured() const { return target_.is_host(); }
  std::vector<Column> columns() const;
  Table table() const;
  std::string axis_names() const;
  std::string point_words(std::size_t at) const;
  std::string verdict() const;

  Problem layer_;
  std::vector<SweepAxis> axes_;
  Target target_;
  std::vector<std::vector<double>> grid_;
  std::vector<SweepPoint> points_;
  std::vector<std::vector<Cell>> rows_;
  std::unique_ptr<CostModel> model_, static_model_;  // of modelled_
  SweepPoint modelled_;
  bool has_cost_ = false;
  std::int64_t compared_ = 0, paying_ = 0, equal_ = 0;
  double best_ratio_ = 0;
  std::size_t best_ = 0;
};

// Returns the report of a sweep, over figures or over devices, as text.
std::string sweep_text(const Report& report, bool is_measured);

}  // namespace tessera::study
