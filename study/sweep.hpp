#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/study/cost_model.hpp"
#include "tessera/study/sweep_grid.hpp"
#include "tessera/study/tables.hpp"

namespace tessera::study {

using ModelAt = std::function<std::unique_ptr<CostModel>(const SweepPoint&)>;

// A layer and the figures of it or of its machine that vary.
struct SweepRequest {
  SweepPoint layer;
  std::vector<SweepAxis> axes;
  std::string machine_name;   // as it was asked for
  std::string machine_words;  // for people
  ModelAt model;
  ModelAt static_model;  // of patterns that stay; empty: they are not looked at
};

// Compares a layer with the dense one at all points of a grid.
class Sweep {
 public:
  // Throws Error{InvalidArgument} for a figure that is not legal.
  explicit Sweep(SweepRequest request);

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
  bool is_measured() const { return !request_.static_model; }
  std::vector<Column> columns() const;
  Table table() const;
  std::string axis_names() const;
  std::string point_words(std::size_t at) const;
  std::string verdict() const;

  SweepRequest request_;
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

}  // namespace tessera::study
