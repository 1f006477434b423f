#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/train/optim/values.hpp"

namespace tessera::examples {

// Mean of the squares of q - target; `q` becomes its gradient.
inline double loss_and_gradient(Matrix<float>& q, const Matrix<float>& target) {
  double sum = 0;
  const double count = double(q.elements().size());
  for (std::size_t i = 0; i < q.elements().size(); ++i) {
    float& value = q.elements()[i];
    value -= target.elements()[i];
    sum += double(value) * double(value);
    value *= float(2 / count);
  }
  return sum / count;
}

// The change that removes the `count` smallest weights and adds as many blocks at the first free
// columns of the rows that lost some. For elements.
inline sparse::PatternChange rewire(const sparse::Csr<float>& weights, std::int64_t count) {
  std::vector<std::pair<float, sparse::BlockAt>> sizes;
  for (std::int32_t row = 0; row < weights.block_rows(); ++row)
    for (auto i = weights.row_begin[std::size_t(row)]; i < weights.row_begin[std::size_t(row) + 1];
         ++i)
      sizes.push_back(
          {std::abs(weights.values[std::size_t(i)]), {row, weights.col[std::size_t(i)]}});
  std::sort(sizes.begin(), sizes.end());
  sparse::PatternChange change;
  for (std::int64_t i = 0; i < count; ++i) change.removed.push_back(sizes[std::size_t(i)].second);
  std::vector<std::int32_t> next(std::size_t(weights.block_rows()));  // column to try, by row
  for (const sparse::BlockAt& lost : change.removed) {
    const auto row = std::size_t(lost.row);
    const auto begin = weights.col.begin() + weights.row_begin[row],
               end = weights.col.begin() + weights.row_begin[row + 1];
    std::int32_t& col = next[row];
    while (std::binary_search(begin, end, col)) ++col;
    if (col < weights.cols) change.added.push_back({lost.row, col++});
  }
  return change;
}

// Trains a layer of one group to compute what random weights compute, with steps of an optimiser on
// its values, and moves some weights to other places now and then. Works on any layer in float
// (layer/layer.hpp). Returns the loss before each step.
inline std::vector<double> train_layer(layer::Layer& layer, const sparse::Csr<float>& weights,
                                       Executor& executor) {
  constexpr int kSteps = 24, kRewireEvery = 6;
  if (layer.set_weights(weights)) throw std::runtime_error("the weights do not fit");
  const Matrix<float> s = random_matrix<float>(weights.cols, layer.batch(), 1),
                      target = random_matrix<float>(weights.rows, layer.batch(), 2);
  Matrix<float> q(weights.rows, layer.batch());
  const train::Optimiser optimiser{.rule = train::Adam{.learning_rate = 0.02}};
  auto state = train::make_value_state<float>(optimiser, layer.values());
  std::vector<float> gradients, values;
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    layer.run(Pass::Fwd, {.in = s.view(), .out = q.view()});
    losses.push_back(loss_and_gradient(q, target));
    gradients.resize(std::size_t(layer.values()));
    layer.run(Pass::GradW,
              {.in = std::as_const(q).view(), .in_s = s.view(), .gradients = gradients});
    values = layer.weights().values;
    train::step<float>(optimiser, values, gradients, state, executor);
    layer.set_values(values);
    if ((step + 1) % kRewireEvery != 0) continue;
    if (layer.update_weights(rewire(layer.weights(), layer.values() / 20)))
      throw std::runtime_error("the changed pattern does not fit");
    state = train::make_value_state<float>(optimiser, layer.values());
  }
  return losses;
}

}  // namespace tessera::examples
