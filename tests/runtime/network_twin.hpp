#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::runtime {

// Every optimiser, with a learning rate at which ten steps stay close to those of plain loops.
inline std::vector<codelets::Optimiser> optimisers() {
  using namespace codelets;
  constexpr double kRate = 0.01, kMomentum = 0.9;
  return {{.rule = Sgd{kRate}},
          {.rule = Sgd{kRate, kMomentum}, .rescale = 0.5, .clip = 0.01},
          {.rule = AdaGrad{kRate, 1e-8}},
          {.rule = Adam{.learning_rate = kRate}},
          {.rule = Nesterov{kRate, kMomentum}},
          {.rule = TorchSgd{kRate, kMomentum}, .weight_decay = 0.01},
          {.rule = AdamW{.learning_rate = kRate}}};
}

// The data of a network and the same network in plain loops, in double precision.
struct Twin {
  explicit Twin(const NetworkSpec& s, std::uint64_t seed = 5) : spec(s) {
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      const NetworkLayer& layer = spec.layers[l];
      const Dims size{1, layer.outputs, layer.inputs, 1};
      const Dims padded = Problem{.size = size, .block = layer.block}.size_in_blocks();
      weights.push_back(
          sparse::random_pattern(padded.x, padded.y, layer.block, layer.density, seed + l));
      Random random(seed + 100 + l);
      for (float& v : weights.back().values)
        v = float((2 * random.unit() - 1) / std::sqrt(layer.density * double(layer.inputs)));
      bias.emplace_back();
      for (std::int64_t i = 0; i < layer.outputs; ++i)
        bias.back().push_back(layer.bias ? float(0.2 * random.unit() - 0.1) : 0.0f);
      for (int s2 = 0; s2 < 2; ++s2) {
        weight_states[s2].emplace_back(weights.back().values.size());
        bias_states[s2].emplace_back(bias.back().size());
      }
      values.emplace_back(weights.back().values.begin(), weights.back().values.end());
      biases.emplace_back(bias.back().begin(), bias.back().end());
    }
    inputs = random_matrix<float>(spec.layers.front().inputs, spec.batch, seed + 7);
    targets = random_matrix<float>(spec.layers.back().outputs, spec.batch, seed + 8);
    Random random(seed + 9);
    for (std::int64_t i = 0; i < spec.batch; ++i)
      labels.push_back(std::int32_t(random.below(std::uint64_t(spec.layers.back().outputs))));
  }

  NetworkBatch batch() const { return {inputs.view(), labels, targets.view()}; }

  // `network` is a Network, or another class with its functions.
  template <class N>
  void give(N& network) const {
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      ASSERT_FALSE(network.set_weights(std::int64_t(l), weights[l]).has_value());
      if (spec.layers[l].bias) network.set_bias(std::int64_t(l), bias[l]);
    }
  }

  static double act(const codelets::ActivationRule& rule, double v) {
    if (rule.kind == codelets::Activation::Relu)
      return std::min(std::max(v, 0.0), double(rule.cap));
    if (rule.kind == codelets::Activation::None) return v;
    return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  }
  static double slope(const codelets::ActivationRule& rule, double v) {
    if (rule.kind == codelets::Activation::None) return 1;
    if (rule.kind == codelets::Activation::Relu) return v > 0 && v < rule.cap ? 1 : 0;
    return (act(rule, v + 1e-6) - act(rule, v - 1e-6)) / 2e-6;
  }

  // Calls visit(position, row, column) for each stored value inside the layer's size.
  template <class Visit>
  void for_each_value(std::size_t l, Visit&& visit) const {
    const sparse::Csr<float>& m = weights[l];
    std::size_t position = 0;
    for (std::int64_t r = 0; r < m.block_rows(); ++r)
      for (std::int64_t i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i)
        for (std::int64_t a = 0; a < m.block.rows; ++a)
          for (std::int64_t b = 0; b < m.block.cols; ++b, ++position) {
            const std::int64_t x = r * m.block.rows + a;
            const std::int64_t y = m.col[std::size_t(i)] * m.block.cols + b;
            if (x < spec.layers[l].outputs && y < spec.layers[l].inputs) visit(position, x, y);
          }
  }

  using Tensor = std::vector<std::vector<double>>;  // [row][column]
  std::vector<Tensor> sums, results;                // by layer; results[0] is the input

  void forward() {
    const auto z = std::size_t(spec.batch);
    sums.clear();
    results.assign(1, Tensor(std::size_t(inputs.rows()), std::vector<double>(z)));
    for (std::int64_t r = 0; r < inputs.rows(); ++r)
      for (std::size_t c = 0; c < z; ++c)
        results[0][std::size_t(r)][c] = double(inputs(r, std::int64_t(c)));
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      Tensor sum(std::size_t(spec.layers[l].outputs), std::vector<double>(z));
      for (std::size_t r = 0; r < sum.size(); ++r)
        for (double& v : sum[r]) v = biases[l][r];
      for_each_value(l, [&](std::size_t i, std::int64_t x, std::int64_t y) {
        for (std::size_t c = 0; c < z; ++c)
          sum[std::size_t(x)][c] += values[l][i] * results[l][std::size_t(y)][c];
      });
      Tensor result = sum;
      for (auto& row : result)
        for (double& v : row) v = act(spec.layers[l].activation, v);
      sums.push_back(std::move(sum));
      results.push_back(std::move(result));
    }
  }

  // Replaces the outputs by their gradient and returns the loss.
  double take_loss(Tensor& outputs) const {
    double loss = 0;
    const double count = double(spec.batch);
    for (std::size_t c = 0; c < std::size_t(spec.batch); ++c) {
      double sum = 0;
      for (const auto& row : outputs) sum += std::exp(row[c]);
      for (std::size_t r = 0; r < outputs.size(); ++r) {
        double& v = outputs[r][c];
        if (spec.loss == codelets::Loss::SoftmaxCrossEntropy) {
          const bool is_label = std::int32_t(r) == labels[c];
          if (is_label) loss += (std::log(sum) - v) / count;
          v = (std::exp(v) / sum - (is_label ? 1 : 0)) / count;
        } else {
          const double all = count * double(outputs.size());
          const double off = v - double(targets(std::int64_t(r), std::int64_t(c)));
          loss += off * off / all;
          v = 2 * off / all;
        }
      }
    }
    return loss;
  }

  static void update(const codelets::Optimiser& optimiser, int t, double g, double& w, double& m,
                     double& v) {
    const auto by_adam = [&](const auto& r) {
      m = r.beta1 * m + (1 - r.beta1) * g;
      v = r.beta2 * v + (1 - r.beta2) * g * g;
      w -= r.learning_rate * std::sqrt(1 - std::pow(r.beta2, t)) / (1 - std::pow(r.beta1, t)) * m /
           (std::sqrt(v) + r.epsilon);
    };
    g = optimiser.rescale * g;
    if (optimiser.clip) g = std::clamp(g, -*optimiser.clip, *optimiser.clip);
    g += optimiser.weight_decay * w;
    if (const auto* sgd = std::get_if<codelets::Sgd>(&optimiser.rule)) {
      w += m = sgd->momentum * m - sgd->learning_rate * g;
    } else if (const auto* nesterov = std::get_if<codelets::Nesterov>(&optimiser.rule)) {
      m = nesterov->momentum * m - nesterov->learning_rate * g;
      w += nesterov->momentum * m - nesterov->learning_rate * g;
    } else if (const auto* torch = std::get_if<codelets::TorchSgd>(&optimiser.rule)) {
      w -= torch->learning_rate * (m = torch->momentum * m + g);
    } else if (const auto* adagrad = std::get_if<codelets::AdaGrad>(&optimiser.rule)) {
      m += g * g;
      w -= adagrad->learning_rate * g / (std::sqrt(m) + adagrad->epsilon);
    } else if (const auto* adamw = std::get_if<codelets::AdamW>(&optimiser.rule)) {
      w -= adamw->learning_rate * adamw->decay * w;
      by_adam(*adamw);
    } else {
      by_adam(std::get<codelets::Adam>(optimiser.rule));
    }
  }

  // One training step; returns the loss before it.
  double step(int t) {
    forward();
    Tensor gradient = results.back();
    const double loss = take_loss(gradient);
    for (std::size_t l = spec.layers.size(); l-- > 0;) {
      for (std::size_t r = 0; r < gradient.size(); ++r)
        for (std::size_t c = 0; c < gradient[r].size(); ++c)
          gradient[r][c] *= slope(spec.layers[l].activation, sums[l][r][c]);
      Tensor below(results[l].size(), std::vector<double>(std::size_t(spec.batch)));
      std::vector<double> of_values(values[l].size());
      for_each_value(l, [&](std::size_t i, std::int64_t x, std::int64_t y) {
        for (std::size_t c = 0; c < std::size_t(spec.batch); ++c) {
          below[std::size_t(y)][c] += values[l][i] * gradient[std::size_t(x)][c];
          of_values[i] += gradient[std::size_t(x)][c] * results[l][std::size_t(y)][c];
        }
      });
      for (std::size_t i = 0; i < values[l].size(); ++i)
        update(spec.optimiser, t, of_values[i], values[l][i], weight_states[0][l][i],
               weight_states[1][l][i]);
      for (std::size_t r = 0; spec.layers[l].bias && r < gradient.size(); ++r) {
        double sum = 0;
        for (const double g : gradient[r]) sum += g;
        update(codelets::without_decay(spec.optimiser), t, sum, biases[l][r], bias_states[0][l][r],
               bias_states[1][l][r]);
      }
      gradient = std::move(below);
    }
    return loss;
  }

  NetworkSpec spec;
  std::vector<sparse::Csr<float>> weights;
  std::vector<std::vector<float>> bias;
  std::vector<std::vector<double>> values, biases;
  std::vector<std::vector<double>> weight_states[2], bias_states[2];
  Matrix<float> inputs, targets;
  std::vector<std::int32_t> labels;
};

}  // namespace tessera::runtime
