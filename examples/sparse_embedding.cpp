// A sparse embedding and a sparse layer are trained for ten steps on the modelled machine: the
// embedding by adding scaled gradients to the rows of the words, the layer with Adam. A plain
// loop in double precision, which knows nothing of formats or machines, does the same beside it.
//   h[dim][batch] = rows of E[word][dim],  q[out][batch] = F[out][dim] * h,
//   loss = 1/2 * sum of (q - wanted)^2
// At the end, one step of the embedding is compared with passes of its layer whose operands have a
// one for each word, which do the same.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tessera.hpp"
#include "tessera/train/optim/values.hpp"

namespace {

using namespace tessera;

constexpr std::int64_t kWords = 8192, kDim = 64, kOut = 32, kBatch = 8;
constexpr double kDensity = 0.25, kRate = 0.01;
const train::Optimiser kAdam{.rule = train::Adam{.learning_rate = 0.01}, .rescale = 1.0 / kBatch};

Problem problem_of(std::int64_t x, std::int64_t y) {
  return {.size = {1, x, y, kBatch},
          .density = kDensity,
          .data_type = DataType::Float,
          .grad_a = true,
          .grad_w = true};
}

// A layer on the modelled machine, with the weights that it trains.
struct Trained {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  planner::Plan plan;
  runtime::FullyConnected layer;
  sparse::Csr<float> weights;
  train::ValueState<float> state;

  Trained(std::int64_t x, std::int64_t y, std::uint64_t seed, Executor& executor)
      : problem(problem_of(x, y)),
        plan(planner::plan_or_throw(problem, machine, with_buckets())),
        layer(problem, plan, machine, device::ExchangeMode::Share, executor),
        weights(sparse::random_pattern(x, y, {1, 1}, kDensity, seed)),
        state(train::make_value_state<float>(kAdam, weights.blocks())) {
    for (float& w : weights.values) w *= 0.3f;
    if (const auto misfit = layer.set_weights(weights)) throw std::runtime_error(misfit->message);
  }
  static planner::Options with_buckets() {
    planner::Options options;
    options.constraints.use_dense = false;
    return options;
  }
  void train(const sparse::Csr<float>& gradient, Executor& executor) {
    train::step<float>(kAdam, weights.values, gradient.values, state, executor);
    layer.set_values(weights.values);
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

// Adds the scaled gradient to the row of a word, where the mask has weights.
void add_to_row(Plain& e, std::int64_t word, std::int64_t d, double g) {
  if (e.mask(word, d) != 0) e.weights(word, d) -= kRate / kBatch * g;
}

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
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t d = 0; d < kDim; ++d) add_to_row(e, words[b], d, h_grad(d, b));
  return loss;
}

Matrix<float> transposed(const Matrix<float>& matrix) {
  Matrix<float> result(matrix.cols(), matrix.rows());
  transpose_groups<float>(matrix.view(), result.view(), /*groups=*/1);
  return result;
}

// `cycles` receives those of the embedding.
double machine_step(runtime::Embedding& e, Trained& f, const std::vector<std::int64_t>& words,
                    const Matrix<float>& wanted, Executor& executor, Cycles& cycles) {
  Matrix<float> rows(kBatch, kDim), q(kOut, kBatch), h_grad(kDim, kBatch);
  cycles = e.embedding_slice<float>(words, rows.view()).total();
  const Matrix<float> h = transposed(rows);
  f.layer.forward<float>(h.view(), q.view());
  double loss = 0;
  for (std::int64_t i = 0; i < kOut * kBatch; ++i) {
    float& miss = q.elements()[i] -= wanted.elements()[i];
    loss += double(miss) * double(miss) / 2;
  }
  sparse::Csr<float> f_grad = f.layer.weights();
  f.layer.grad_w<float>(q.view(), h.view(), f_grad.values);
  f.layer.grad_a<float>(q.view(), h_grad.view());
  const Matrix<float> slices = transposed(h_grad);
  cycles += e.embedding_update_add<float>(words, slices.view(), float(-kRate / kBatch)).total();
  f.train(f_grad, executor);
  return loss;
}

// Returns the cycles of the passes that look up and update the same rows.
Cycles one_hot_cycles(Trained& e, const std::vector<std::int64_t>& words) {
  Matrix<float> picked(kWords, kBatch), h(kDim, kBatch);
  for (std::int64_t b = 0; b < kBatch; ++b) picked(words[b], b) = 1;
  Cycles cycles = e.layer.grad_a<float>(picked.view(), h.view()).total();
  std::vector<float> gradient(std::size_t(e.layer.values()));
  return cycles += e.layer.grad_w<float>(picked.view(), h.view(), gradient).total();
}

double worst_difference(const Trained& trained, const Plain& plain) {
  const Matrix<float> dense = sparse::to_dense(trained.layer.weights());
  double worst = 0;
  for (std::size_t i = 0; i < dense.elements().size(); ++i)
    worst = std::fmax(worst, std::abs(double(dense.elements()[i]) - plain.weights.elements()[i]));
  return worst;
}

}  // namespace

int main() {
  const auto executor = make_executor();
  Trained e(kWords, kDim, /*seed=*/1, *executor), f(kOut, kDim, /*seed=*/2, *executor);
  Plain plain_e(e.weights), plain_f(f.weights);
  runtime::Embedding table(e.layer, e.problem, e.plan, e.machine, device::ExchangeMode::Share,
                           *executor);
  const Matrix<float> wanted = random_matrix<float>(kOut, kBatch, /*seed=*/3);
  std::vector<std::int64_t> words(kBatch);
  Cycles cycles;
  for (int t = 1; t <= 10; ++t) {
    // The last two words of a batch are the same.
    for (std::int64_t b = 0; b < kBatch; ++b)
      words[b] = (t % 3 * 71 + std::min<std::int64_t>(b, kBatch - 2) * 29) % kWords;
    const double loss = machine_step(table, f, words, wanted, *executor, cycles);
    std::printf("step %2d: loss %.6f, plain loop %.6f\n", t, loss,
                plain_step(plain_e, plain_f, words, wanted, t));
  }
  std::printf("embedding: %lld cycles a step; one-hot passes: %lld\n",
              static_cast<long long>(cycles.value),
              static_cast<long long>(one_hot_cycles(e, words).value));
  const double worst = std::fmax(worst_difference(e, plain_e), worst_difference(f, plain_f));
  std::printf("largest difference of a weight: %.1e\n", worst);
  return worst < 1e-4 ? 0 : 1;
}
