#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::fuzz {
namespace {

// A layer that the input describes, with operands and weights of +1 and -1: all sums are whole
// numbers, so a plain loop gives the same bits.
struct Case {
  Problem problem;
  sparse::Csr<float> weights;
  std::uint64_t seed = 1;
};

Case case_of(InputBytes& bytes) {
  Case c;
  const BlockShape block =
      bytes.flag() ? BlockShape{1, 1} : BlockShape{bytes.number(1, 4), bytes.number(1, 4)};
  const Dims blocks{1, bytes.number(1, 8), bytes.number(1, 8), bytes.number(1, 9)};
  c.problem = {.size = {1, blocks.x * block.rows, blocks.y * block.cols, blocks.z},
               .block = block,
               .density = double(bytes.number(0, 10)) / 10,
               .data_type = bytes.flag() ? DataType::Half : DataType::Float,
               .grad_a = true,
               .grad_w = true};
  c.seed = std::uint64_t(bytes.number(1, 200));
  c.weights =
      sparse::random_pattern(c.problem.size.x, c.problem.size.y, block, c.problem.density, c.seed);
  return c;
}

template <class T>
Matrix<T> signs(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<T> matrix = random_matrix<T>(rows, cols, seed);
  for (T& value : matrix.elements()) value = T(float(value) < 0 ? -1.0F : 1.0F);
  return matrix;
}

// out = matrix * in, element by element.
template <class T>
Matrix<float> plain_product(const Matrix<float>& matrix, const Matrix<T>& in) {
  Matrix<float> out(matrix.rows(), in.cols());
  for (std::int64_t r = 0; r < matrix.rows(); ++r)
    for (std::int64_t c = 0; c < matrix.cols(); ++c)
      for (std::int64_t z = 0; z < in.cols(); ++z) out(r, z) += matrix(r, c) * float(in(c, z));
  return out;
}

template <class T>
void require_equal(const Matrix<T>& got, const Matrix<float>& expected) {
  for (std::int64_t r = 0; r < got.rows(); ++r)
    for (std::int64_t z = 0; z < got.cols(); ++z)
      require(float(got(r, z)) == expected(r, z), "sums of whole numbers are exact");
}

// Runs all passes of a layer that has its weights, and compares them with plain loops.
template <class T, class Layer>
void check_passes(Layer& layer, const Case& c) {
  const Dims size = c.problem.size;
  const Matrix<T> s = signs<T>(size.y, size.z, c.seed + 1);
  const Matrix<T> q_grad = signs<T>(size.x, size.z, c.seed + 2);
  const auto& weights = layer.weights();
  Matrix<T> q(size.x, size.z), s_grad(size.y, size.z);
  layer.template forward<T>(s.view(), q.view());
  require_equal(q, plain_product(sparse::to_dense(weights), s));
  layer.template grad_a<T>(q_grad.view(), s_grad.view());
  require_equal(s_grad, plain_product(sparse::to_dense(sparse::transpose(weights)), q_grad));
  std::vector<float> gradients(std::size_t(layer.values()));
  layer.template grad_w<T>(q_grad.view(), s.view(), gradients);
  sparse::Csr<float> gradient = weights;
  gradient.values = gradients;
  const auto verdict = verify::verify_gradient<T>(weights, gradient, q_grad.view(), s.view(),
                                                  {.result = c.problem.data_type});
  require(verdict.ok(), "gradients are within their bound");
}

template <class Layer>
void check_all_passes(Layer& layer, const Case& c) {
  if (c.problem.data_type == DataType::Half)
    check_passes<Half>(layer, c);
  else
    check_passes<float>(layer, c);
}

// Removes the first block and adds one at a place that is free, if there is one.
sparse::PatternChange change_of(const sparse::Csr<float>& weights) {
  sparse::PatternChange change;
  if (weights.blocks() == 0) return change;
  for (std::int32_t row = 0; row < std::int32_t(weights.block_rows()); ++row) {
    const auto begin = std::size_t(weights.row_begin[std::size_t(row)]);
    const auto end = std::size_t(weights.row_begin[std::size_t(row) + 1]);
    if (begin == end) {
      change.added = {{row, 0}};
    } else if (change.removed.empty()) {
      change.removed = {{row, weights.col[begin]}};
    }
  }
  return change;
}

template <class Layer>
void run_layer(Layer layer, const Case& c, InputBytes& bytes) {
  if (layer.set_weights(c.weights)) return;
  check_all_passes(layer, c);
  if (bytes.flag() && layer.update_weights(change_of(c.weights))) return;
  std::vector<float> values(std::size_t(layer.values()));
  for (float& value : values) value = bytes.flag() ? 1.0F : -1.0F;
  layer.set_values(values);
  check_all_passes(layer, c);
}

}  // namespace

void tile_layer(Input input) {
  InputBytes bytes(input);
  const Case c = case_of(bytes);
  device::Machine machine = device::machine_preset(bytes.flag() ? "gc200" : "mk1");
  machine.tiles = bytes.number(1, 12);
  planner::Options options = planner::sparse_options();
  options.available_memory_proportion = 1;
  options.per_pass_plans = bytes.flag();
  const auto mode = bytes.flag() ? device::ExchangeMode::Share : device::ExchangeMode::Isolate;
  const auto executor = make_executor(ExecutorKind::Threads, int(bytes.number(1, 3)));
  accepts([&] {
    const planner::PlanResult found = planner::plan(c.problem, machine, options);
    if (!found.has_plan) return;
    run_layer(runtime::FullyConnected(c.problem, found.plan, machine, mode, *executor), c, bytes);
  });
}

void host_layer(Input input) {
  InputBytes bytes(input);
  const Case c = case_of(bytes);
  const auto executor = make_executor(ExecutorKind::Threads, int(bytes.number(1, 3)));
  const host::HostCpu cpu{.cores = 2,
                          .l1_data = Bytes(bytes.number(64, 4096)),
                          .l2 = Bytes(bytes.number(512, 16384)),
                          .l3 = Bytes()};
  const host::DenseChoice dense = bytes.flag()   ? host::DenseChoice::Always
                                  : bytes.flag() ? host::DenseChoice::Auto
                                                 : host::DenseChoice::Never;
  accepts(
      [&] { run_layer(host::HostLayer(c.problem, cpu, *executor, {.dense = dense}), c, bytes); });
}

}  // namespace tessera::fuzz
