#include "tessera/runtime/internal/dense_layer.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/pass.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/sparse/row_values.hpp"

namespace tessera::runtime::internal {
namespace {

// Calls visit(row, column, position) for every stored value inside of a layer of this size;
// `position` is that in m.values.
template <class Visit>
void for_each_place(const sparse::Csr<float>& m, const Dims& size, Visit&& visit) {
  for (std::int64_t row = 0; row < std::min(m.rows, size.x); ++row)
    sparse::for_each_in_row(m, row, [&](std::size_t position, std::int64_t column) {
      if (column < size.y) visit(row, column, position);
    });
}

}  // namespace

DenseLayer::DenseLayer(const Problem& of, const planner::Plan& plan, const device::Machine& on,
                       device::ExchangeMode how, Executor& threads)
    : State(of, plan, on, how, threads), plan_(*plan.dense) {
  for (const Pass pass : passes_of(of)) {
    check_dense_plan(plan_, of, pass);
    const auto p = static_cast<std::size_t>(pass);
    programs[p] = &passes_[p].emplace(on, how, threads, plan_, pass);
  }
}

const sparse::CheckedCsr<float>& DenseLayer::given(std::int64_t group) const {
  return given_[std::size_t(group)];
}

std::optional<partitioner::Misfit> DenseLayer::encode(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions&) {
  std::vector<sparse::CheckedCsr<float>> next(weights.begin(), weights.end());
  r_.resize(
      std::size_t(problem.size.g * problem.size.x * problem.size.y * bytes_of(problem.data_type)));
  given_.swap(next);
  for (std::int64_t g = 0; g < problem.size.g; ++g) refill(g);
  return std::nullopt;
}

std::optional<partitioner::Misfit> DenseLayer::encode_update(const sparse::PatternChange& change,
                                                             std::int64_t group) {
  next_ = sparse::with_change(given(group), change);
  return std::nullopt;
}

void DenseLayer::take_update(std::int64_t group) {
  std::swap(given_[std::size_t(group)], next_);
  refill(group);
}

void DenseLayer::put_values(std::span<const float> values, std::int64_t group) {
  internal::put_values(values, given_[std::size_t(group)]);
  refill(group);
}

void DenseLayer::refill(std::int64_t group) {
  const Dims& size = problem.size;
  const sparse::Csr<float>& matrix = *given_[std::size_t(group)];
  with_type(problem.data_type, [&]<class T>(T zero) {
    T* const r = reinterpret_cast<T*>(r_.data()) + group * size.x * size.y;
    std::fill_n(r, size.x * size.y, zero);
    for_each_place(matrix, size, [&](std::int64_t row, std::int64_t column, std::size_t i) {
      r[row * size.y + column] = T(matrix.values[i]);
    });
  });
}

device::ByteRows DenseLayer::r_rows(std::vector<std::byte>& storage) const {
  const std::int64_t row_bytes = problem.size.y * bytes_of(problem.data_type);
  return {storage.data(), problem.size.g * problem.size.x, row_bytes, row_bytes};
}

verify::Rounding DenseLayer::rounding(Pass pass) const {
  static_cast<void>(planned(pass));  // refuses a pass that there is not
  return {problem.data_type, plan_.partials_type, plan_.find(pass)->parts.inner};
}

bool DenseLayer::product(Pass pass, device::ByteRows in, device::ByteRows out,
                         const PassOptions& options, device::Ledger& ledger) {
  return passes_[std::size_t(pass)]->run(options, ledger, DenseArrays{r_rows(r_), in, out});
}

device::ByteRows DenseLayer::transposed(device::ByteRows q_grad) {
  const auto [g, x, y, z] = problem.size;
  const std::int64_t bytes = bytes_of(problem.data_type), row_bytes = x * bytes;
  turned_.resize(std::size_t(g * z * row_bytes));
  with_type(problem.data_type, [&]<class T>(T) {
    T* const to = reinterpret_cast<T*>(turned_.data());
    for (std::int64_t group = 0; group < g; ++group)
      codelets::transpose(reinterpret_cast<const T*>(q_grad.data + group * x * q_grad.stride),
                          q_grad.stride / bytes, x, z, to + group * z * x, x);
  });
  return {turned_.data(), g * z, row_bytes, row_bytes};
}

bool DenseLayer::gradient(device::ByteRows q_grad, device::ByteRows s, std::span<float> gradients,
                          const PassOptions& options, device::Ledger& ledger) {
  const Dims& size = problem.size;
  r_grad_.resize(r_.size());
  const DenseArrays arrays{transposed(q_grad), s, r_rows(r_grad_)};
  if (!passes_[std::size_t(Pass::GradW)]->run(options, ledger, arrays)) return false;
  with_type(problem.data_type, [&]<class T>(T) {
    float* to = gradients.data();
    for (std::int64_t g = 0; g < size.g; ++g) {
      const T* const r_grad = reinterpret_cast<const T*>(r_grad_.data()) + g * size.x * size.y;
      const sparse::Csr<float>& pattern = *given_[std::size_t(g)];
      std::fill_n(to, pattern.values.size(), 0.0f);
      for_each_place(pattern, size, [&](std::int64_t row, std::int64_t column, std::size_t i) {
        to[i] = float(r_grad[row * size.y + column]);
      });
      to += pattern.values.size();
    }
  });
  return true;
}

partitioner::SpillStats DenseLayer::spill() const {
  partitioner::SpillStats stats;
  for (const sparse::CheckedCsr<float>& matrix : given_) stats.blocks += matrix->blocks();
  return stats;
}

}  // namespace tessera::runtime::internal
