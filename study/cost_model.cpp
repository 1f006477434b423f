#include "tessera/study/cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/int_math.hpp"

namespace tessera::study {
namespace {

constexpr double kLeastErrorOfTimes = 0.02;

}  // namespace

std::string to_string(Origin origin) {
  switch (origin) {
    case Origin::Planned:
    case Origin::Static:
      return "modelled";
    case Origin::Forecast:
      return "forecast";
    case Origin::Measured:
      return "measured";
  }
  return "";
}

std::string Cost::name() const {
  return is_dense ? "dense" : fmt::format("{}x{}", block.rows, block.cols);
}

const Cost* cheapest_of(const std::vector<Cost>& costs) {
  const Cost* best = nullptr;
  for (const Cost& cost : costs)
    if (cost.value && (best == nullptr || *cost.value < *best->value)) best = &cost;
  return best;
}

Look CostModel::look(const Form& form, double limit) {
  Cost cost = cheapest(form);
  return {.pays = cost.is_below(limit), .cost = std::move(cost)};
}

std::vector<Form> CostModel::alternatives(const Form& own) const {
  std::vector<Form> forms;
  for (const std::int64_t side : kBlockSides) {
    forms.push_back(own);
    forms.back().block = {side, side};
  }
  return forms;
}

double CostModel::error(const Cost& a, const Cost& b) const {
  switch (origin()) {
    case Origin::Planned:
    case Origin::Static:
      return report::kErrorOfModel;
    case Origin::Forecast:
      return report::kErrorOfForecast;
    case Origin::Measured:
      return std::max(kLeastErrorOfTimes, a.spread + b.spread);
  }
  return 0;
}

report::CostUnit CostModel::unit() const {
  const bool is_time = origin() == Origin::Forecast || origin() == Origin::Measured;
  return is_time ? report::CostUnit::Seconds : report::CostUnit::Cycles;
}

Problem CostModel::problem(const Form& form) const {
  Problem problem = layer_;
  problem.block = form.block;
  problem.density = form.density;
  if (form.batch > 0) problem.size.z = form.batch;
  return problem;
}

std::vector<Cost> in_square_blocks(CostModel& model, const Form& own) {
  std::vector<Cost> costs;
  for (const std::int64_t side : kBlockSides) {
    Form form = own;
    form.block = {side, side};
    costs.push_back(model.sparse(form));
  }
  return costs;
}

double places_of(const Problem& layer, BlockShape block) {
  return double(ceil_div(layer.size.x, block.rows)) * double(ceil_div(layer.size.y, block.cols));
}

double blocks_of(const Problem& layer, const Form& form) {
  if (form.pattern == nullptr) return form.density * places_of(layer, form.block);
  return double(in_whole_blocks(*form.pattern, form.block).blocks());
}

}  // namespace tessera::study
