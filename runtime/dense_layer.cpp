#include "tessera/runtime/internal/dense_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"

namespace tessera::runtime::internal {
namespace {

// Calls visit(row, column, position) for every stored value; `position` is that in m.values.
template <class Visit>
void for_each_place(const sparse::Csr<float>& m, Visit&& visit) {
  const BlockShape block = m.block;
  for (std::int64_t row = 0; row < m.block_rows(); ++row)
    for (auto b = m.row_begin[std::size_t(row)]; b < m.row_begin[std::size_t(row) + 1]; ++b)
      for (std::int64_t i = 0; i < block.area(); ++i)
        visit(row * block.rows + i / block.cols,
              m.col[std::size_t(b)] * block.cols + i % block.cols, b * block.area() + i);
}

}  // namespace

DenseLayer::DenseLayer(const Problem& problem, const planner::DensePlan& plan,
                       const device::Machine& machine, device::ExchangeMode mode,
                       Executor& executor)
    : problem_(problem), plan_(plan), executor_(executor) {
  for (const planner::DensePassPlan& pass : plan_.passes)
    if (pass.product != planner::dense_product(problem, pass.product.pass) ||
        plan_.groups != problem.size.g || plan_.data_type != problem.data_type)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("the dense plan is for another layer than {}; plan it again",
                              to_string(problem)));
  for (const Pass pass : passes_of(problem))
    passes_[std::size_t(pass)].emplace(plan_, pass, machine, mode, executor);
}

const DensePass& DenseLayer::dense_pass(Pass pass) const {
  if (!has(pass)) throw_no_pass(pass);
  return *passes_[std::size_t(pass)];
}

void DenseLayer::check_group(std::int64_t group) const {
  if (empty())
    throw Error(ErrorCode::InvalidArgument, "the layer has no weights yet; call set_weights first");
  if (group < 0 || group >= problem_.size.g)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("group is {}; it must be in 0..{}", group, problem_.size.g - 1));
}

const sparse::CheckedCsr<float>& DenseLayer::given(std::int64_t group) const {
  check_group(group);
  return given_[std::size_t(group)];
}

CheckedWeights DenseLayer::to_check() {
  CheckedWeights all{{}, sums_, executor_};
  for (const sparse::CheckedCsr<float>& matrix : given_) all.groups.push_back(&matrix);
  return all;
}

std::optional<partitioner::Misfit> DenseLayer::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions&) {
  std::vector<sparse::CheckedCsr<float>> next(weights.begin(), weights.end());
  r_.resize(std::size_t(problem_.size.g * problem_.size.x * problem_.size.y *
                        bytes_of(problem_.data_type)));
  given_.swap(next);
  for (std::int64_t g = 0; g < problem_.size.g; ++g) refill(g);
  change_bytes_ = pattern_bytes();
  return std::nullopt;
}

std::optional<partitioner::Misfit> DenseLayer::encode_update(const sparse::PatternChange& change,
                                                             std::int64_t group) {
  check_group(group);
  next_ = sparse::with_change(given_[std::size_t(group)], change);
  const std::int64_t blocks = std::ssize(change.removed) + std::ssize(change.added);
  next_change_bytes_ = Bytes(blocks * problem_.block.area() * bytes_of(problem_.data_type));
  return std::nullopt;
}

void DenseLayer::take_update(std::int64_t group) {
  std::swap(given_[std::size_t(group)], next_);
  change_bytes_ = next_change_bytes_;
  refill(group);
}

void DenseLayer::set_values(std::span<const float> values, std::int64_t group) {
  check_group(group);
  sparse::CheckedCsr<float>& matrix = given_[std::size_t(group)];
  if (values.size() != matrix->values.size())
    throw Error(ErrorCode::InvalidArgument, fmt::format("{} values were given; the pattern has {}",
                                                        values.size(), matrix->values.size()));
  std::copy(values.begin(), values.end(), matrix.mutable_values().begin());
  refill(group);
}

void DenseLayer::refill(std::int64_t group) {
  sums_.forget();
  const Dims& size = problem_.size;
  const sparse::Csr<float>& matrix = *given_[std::size_t(group)];
  with_type(problem_.data_type, [&]<class T>(T zero) {
    T* const r = reinterpret_cast<T*>(r_.data()) + group * size.x * size.y;
    std::fill_n(r, size.x * size.y, zero);
    for_each_place(matrix, [&](std::int64_t row, std::int64_t column, std::int64_t i) {
      if (row < size.x && column < size.y)
        r[row * size.y + column] = T(matrix.values[std::size_t(i)]);
    });
  });
}

device::ByteRows DenseLayer::r_rows(std::vector<std::byte>& storage) const {
  const std::int64_t row_bytes = problem_.size.y * bytes_of(problem_.data_type);
  return {storage.data(), problem_.size.g * problem_.size.x, row_bytes, row_bytes};
}

template <class T>
Padded<T> DenseLayer::operand(MatrixView<T> view, std::int64_t Dims::* side) {
  return {view, problem_.size.g, problem_.size.*side, problem_.size.z,
          copies_[side == &Dims::x ? 0 : 1]};
}

verify::Rounding DenseLayer::rounding(Pass pass) const {
  return {problem_.data_type, plan_.partials_type, plan_.find(pass)->parts.inner};
}

template <class T>
bool DenseLayer::product(Pass pass, MatrixView<const T> in, MatrixView<T> out,
                         const PassOptions& options, device::Ledger& ledger) {
  const bool forward = pass == Pass::Fwd;
  auto from = operand(in, forward ? &Dims::y : &Dims::x);
  auto to = operand(out, forward ? &Dims::x : &Dims::y);
  from.read();
  DensePass& program = *passes_[std::size_t(pass)];
  if (!program.run({r_rows(r_), from.bytes(), to.bytes()}, options, ledger)) return false;
  to.write_back();
  if (options.self_check != nullptr)
    check_layer_product<T>(pass, to_check(), in, out,
                           {rounding(pass), memory_damage({program.damage()})},
                           *options.self_check);
  return true;
}

template <class T>
device::ByteRows DenseLayer::transposed(MatrixView<const T> q_grad) {
  const auto [g, x, y, z] = problem_.size;
  std::vector<std::byte>& storage = copies_[0];
  storage.resize(std::size_t(g * x * z) * sizeof(T));
  T* const to = reinterpret_cast<T*>(storage.data());
  for (std::int64_t group = 0; group < g; ++group)
    for (std::int64_t row = 0; row < x; ++row)
      for (std::int64_t column = 0; column < z; ++column)
        to[(group * z + column) * x + row] = q_grad(group * x + row, column);
  const std::int64_t row_bytes = x * std::int64_t(sizeof(T));
  return {storage.data(), g * z, row_bytes, row_bytes};
}

template <class T>
bool DenseLayer::gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                          std::span<float> gradients, const PassOptions& options,
                          device::Ledger& ledger) {
  const Dims& size = problem_.size;
  const device::ByteRows q_in = transposed(q_grad);
  auto s_in = operand(s, &Dims::y);
  s_in.read();
  r_grad_.resize(r_.size());
  DensePass& program = *passes_[std::size_t(Pass::GradW)];
  if (!program.run({q_in, s_in.bytes(), r_rows(r_grad_)}, options, ledger)) return false;
  float* to = gradients.data();
  for (std::int64_t g = 0; g < size.g; ++g) {
    const T* const r_grad = reinterpret_cast<const T*>(r_grad_.data()) + g * size.x * size.y;
    const sparse::Csr<float>& pattern = *given_[std::size_t(g)];
    for_each_place(pattern, [&](std::int64_t row, std::int64_t column, std::int64_t i) {
      const bool inside = row < size.x && column < size.y;
      to[i] = inside ? float(r_grad[row * size.y + column]) : 0.0f;
    });
    to += pattern.values.size();
  }
  if (options.self_check != nullptr)
    check_layer_gradient<T>(to_check(), gradients, q_grad, s,
                            {rounding(Pass::GradW), memory_damage({program.damage()})},
                            *options.self_check);
  return true;
}

Bytes DenseLayer::high_water() const {
  Bytes most;
  for (const std::optional<DensePass>& pass : passes_)
    if (pass) most = std::max(most, pass->memory().high_water());
  return most;
}

partitioner::SpillStats DenseLayer::spill() const {
  partitioner::SpillStats stats;
  for (const sparse::CheckedCsr<float>& matrix : given_) stats.blocks += matrix->blocks();
  return stats;
}

#define TESSERA_DENSE_LAYER(T)                                                                    \
  template bool DenseLayer::product(Pass, MatrixView<const T>, MatrixView<T>, const PassOptions&, \
                                    device::Ledger&);                                             \
  template bool DenseLayer::gradient(MatrixView<const T>, MatrixView<const T>, std::span<float>,  \
                                     const PassOptions&, device::Ledger&);
TESSERA_DENSE_LAYER(float)
TESSERA_DENSE_LAYER(Half)
TESSERA_DENSE_LAYER(BFloat16)
#undef TESSERA_DENSE_LAYER

}  // namespace tessera::runtime::internal
