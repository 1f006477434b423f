// A sparse embedding and a sparse layer are trained for ten steps with lazy Adam on the modelled
// machine. A plain loop in double precision, which knows nothing of formats or machines, does the
// same beside it.
//   h[dim][batch] = transpose(E[word][dim]) * one-hot[word][batch],  q[out][batch] = F[out][dim] *
//   h, loss = 1/2 * sum of (q - wanted)^2

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tessera.hpp"
#include "tessera/train/optim/step.hpp"
#include "tessera/train/row_gradient.hpp"

namespace {

using namespace tessera;

constexpr std::int64_t kWords = 256, kDim = 64, kOut = 32, kBatch = 8;
constexpr double kDensity = 0.25;
const train::Optimiser kAdam{.rule = train::Adam{.learning_rate = 0.01}, .rescale = 1.0 / kBatch};

// A layer on the modelled machine, with the weights that it trains.
struct Trained {
  runtime::FullyConnected layer;
  arrays::Array<float> weights;
  train::State<float> state;

  Trained(std::int64_t x, std::int64_t y, std::uint64_t seed, Executor& executor)
      : layer(make_layer(x, y, executor)),
        weights(sparse::random_pattern(x, y, {1, 1}, kDensity, seed)),
        state(train::make_state(kAdam, weights)) {
    for (float& w : values()) w *= 0.3f;
    if (const auto misfit = layer.set_weights(csr())) throw std::runtime_error(misfit->message);
  }
  static runtime::FullyConnected make_layer(std::int64_t x, std::int64_t y, Executor& executor) {
    const Problem problem{.size = {1, x, y, kBatch},
                          .density = kDensity,
                          .data_type = DataType::Float,
                          .grad_a = true,
                          .grad_w = true};
    const device::Machine machine = device::machine_preset("gc200");
    return {problem, planner::plan_or_throw(problem, machine), machine, device::ExchangeMode::Share,
            executor};
  }
  const sparse::Csr<float>& csr() const { return std::get<sparse::Csr<float>>(weights); }
  std::vector<float>& values() { return std::get<sparse::Csr<float>>(weights).values; }
  void train(const arrays::Array<float>& gradient) {
    train::step(kAdam, weights, gradient, state);
    layer.set_values(values());
  }
};

// The reference: dense weights, a mask, and Adam as in its formula.
struct Plain {
  Matrix<double> weights, mask, m, v;

  explicit Plain(const sparse::Csr<float>& start)
      : weights(start.rows, start.cols), mask(weights), m(weights), v(weights) {
    for (std::int64_t r = 0; r < start.rows; ++r)
      for (std::int64_t k = start.row_begin[r]; k < start.row_begin[r + 1]; ++k) {
        weights(r, start.col[k]) = double(start.values[k]);
        mask(r, start.col[k]) = 1;
      }
  }
  void adam(std::int64_t r, std::int64_t c, double g, int t) {
    if (mask(r, c) == 0) return;
    g /= kBatch;
    m(r, c) = 0.9 * m(r, c) + 0.1 * g;
    v(r, c) = 0.999 * v(r, c) + 0.001 * g * g;
    const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    weights(r, c) -= rate * m(r, c) / (std::sqrt(v(r, c)) + 1e-8);
  }
};

double plain_step(Plain& e, Plain& f, const std::vector<std::int64_t>& words,
                  const Matrix<float>& wanted, int t) {
  Matrix<double> h_grad(kDim, kBatch), f_grad(kOut, kDim);
  double loss = 0;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t o = 0; o < kOut; ++o) {
      double miss = -double(wanted(o, b));
      for (std::int64_t d = 0; d < kDim; ++d) miss += f.weights(o, d) * e.weights(words[b], d);
      loss += miss * miss / 2;
      for (std::int64_t d = 0; d < kDim; ++d) {
        f_grad(o, d) += miss * e.weights(words[b], d);
        h_grad(d, b) += miss * f.weights(o, d);
      }
    }
  for (std::int64_t o = 0; o < kOut; ++o)
    for (std::int64_t d = 0; d < kDim; ++d) f.adam(o, d, f_grad(o, d), t);
  for (std::int64_t b = 0; b < kBatch; ++b)  // the words of a batch differ from each other
    for (std::int64_t d = 0; d < kDim; ++d) e.adam(words[b], d, h_grad(d, b), t);
  return loss;
}

double machine_step(Trained& e, Trained& f, const std::vector<std::int64_t>& words,
                    const Matrix<float>& wanted) {
  Matrix<float> picked(kWords, kBatch), h(kDim, kBatch), q(kOut, kBatch), h_grad(kDim, kBatch);
  for (std::int64_t b = 0; b < kBatch; ++b) picked(words[b], b) = 1;
  e.layer.grad_a<float>(picked.view(), h.view());
  f.layer.forward<float>(h.view(), q.view());
  double loss = 0;
  for (std::int64_t i = 0; i < kOut * kBatch; ++i) {
    float& miss = q.elements()[i] -= wanted.elements()[i];
    loss += double(miss) * double(miss) / 2;
  }
  sparse::Csr<float> f_grad;
  f.layer.grad_w<float>(q.view(), h.view(), f_grad);
  f.layer.grad_a<float>(q.view(), h_grad.view());
  e.train(train::grad_w_rows<float>(e.layer, picked.view(), h_grad.view()).gradient);
  f.train(f_grad);
  return loss;
}

double worst_difference(const Trained& trained, const Plain& plain) {
  const Matrix<float> dense = sparse::to_dense(trained.csr());
  double worst = 0;
  for (std::size_t i = 0; i < dense.elements().size(); ++i)
    worst = std::fmax(worst, std::abs(double(dense.elements()[i]) - plain.weights.elements()[i]));
  return worst;
}

}  // namespace

int main() {
  const auto executor = make_executor();
  Trained e(kWords, kDim, /*seed=*/1, *executor), f(kOut, kDim, /*seed=*/2, *executor);
  Plain plain_e(e.csr()), plain_f(f.csr());
  const Matrix<float> wanted = random_matrix<float>(kOut, kBatch, /*seed=*/3);
  for (int t = 1; t <= 10; ++t) {
    std::vector<std::int64_t> words;
    for (std::int64_t b = 0; b < kBatch; ++b) words.push_back((t % 3 * 71 + b * 29) % kWords);
    const double loss = machine_step(e, f, words, wanted);
    std::printf("step %2d: loss %.6f, plain loop %.6f\n", t, loss,
                plain_step(plain_e, plain_f, words, wanted, t));
  }
  const double worst = std::fmax(worst_difference(e, plain_e), worst_difference(f, plain_f));
  std::printf("largest difference of a weight: %.1e\n", worst);
  return worst < 1e-4 ? 0 : 1;
}
