#include "tessera/runtime/internal/dense_gradient.hpp"

#include <algorithm>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/runtime/internal/joined_runs.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/padded.hpp"

namespace tessera::runtime::internal {

DenseGradient::DenseGradient(const Problem& problem, const device::Machine& machine,
                             device::ExchangeMode mode, Executor& executor)
    : problem_(problem) {
  Problem part = problem;
  part.block = {1, 1};
  part.partials_type = DataType::Float;
  part.grad_a = false;
  part.grad_w = true;
  std::string reason;
  // Doubling the splits takes few plans; the last program is at most half of what would fit.
  for (std::int64_t splits = 1; !pass_; splits *= 2) {
    rows_ = ceil_div(problem.size.x, splits);
    part.size.x = rows_;
    planner::DensePlanResult made =
        planner::plan_dense(part, machine, {.partials_type = DataType::Float});
    const bool fits =
        made.plan && OwnPass<DensePass>::memory_of(machine, *made.plan, Pass::GradW).high_water() <=
                         machine.tile_memory;
    if (fits) {
      plan_ = std::move(made.plan);
      pass_.emplace(machine, mode, executor, *plan_, Pass::GradW);
    } else if (rows_ == 1) {
      throw Error(ErrorCode::NoSolution,
                  "dense_grad_w: not even one row of a group fits beside the buckets: " +
                      (made.reason.empty() ? "its results take too much memory" : made.reason));
    }
  }
}

std::int64_t DenseGradient::splits() const { return ceil_div(problem_.size.x, rows_); }

// Returns the transposes of these rows of each group, [g * z][rows]; rows that there are not are 0.
template <class T>
device::ByteRows DenseGradient::left_of(MatrixView<const T> q_grad, Range rows) {
  const Dims& size = problem_.size;
  left_.assign(std::size_t(size.g * size.z * rows_) * sizeof(T), std::byte());
  T* const to = reinterpret_cast<T*>(left_.data());
  for (std::int64_t g = 0; g < size.g; ++g)
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t z = 0; z < size.z; ++z)
        to[(g * size.z + z) * rows_ + row - rows.begin] = q_grad(g * size.x + row, z);
  const std::int64_t row_bytes = rows_ * std::int64_t(sizeof(T));
  return {left_.data(), size.g * size.z, row_bytes, row_bytes};
}

template <class T>
bool DenseGradient::run(MatrixView<const T> q_grad, MatrixView<const T> s, MatrixView<T> gradient,
                        const PassOptions& options, device::Ledger& ledger) {
  const Dims& size = problem_.size;
  const auto element = static_cast<std::int64_t>(sizeof(T));
  out_.resize(std::size_t(size.g * rows_ * size.y) * sizeof(T));
  const device::ByteRows right = contiguous<T>(s, right_);
  const device::ByteRows out{out_.data(), size.g * rows_, size.y * element, size.y * element};
  device::Damage damage;
  RunSeries series(options, ledger);
  for (std::int64_t first = 0; first < size.x; first += rows_) {
    const Range rows{first, std::min(first + rows_, size.x)};
    const device::ByteRows left = left_of(q_grad, rows);
    if (!series.run([&](const PassOptions& own, device::Ledger& of_run) {
          return pass_->run(own, of_run, DenseArrays{left, right, out});
        }))
      return false;
    if (damage.slots == 0) damage = pass_->damage();
    const T* const results = reinterpret_cast<const T*>(out_.data());
    for (std::int64_t g = 0; g < size.g; ++g)
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        for (std::int64_t y = 0; y < size.y; ++y)
          gradient(g * size.x + row, y) = results[(g * rows_ + row - first) * size.y + y];
  }
  if (options.self_check != nullptr) check<T>(q_grad, s, gradient, damage, options);
  return true;
}

// Compares sums as a GradW whose pattern has every place.
template <class T>
void DenseGradient::check(MatrixView<const T> q_grad, MatrixView<const T> s,
                          MatrixView<const T> gradient, const device::Damage& damage,
                          const PassOptions& options) const {
  const Dims& size = problem_.size;
  sparse::Csr<float> full = full_matrix(size.x, size.y);  // with the values of one group
  const verify::Rounding rounding{problem_.data_type, DataType::Float,
                                  plan_->find(Pass::GradW)->parts.inner};
  for (std::int64_t g = 0; g < size.g; ++g) {
    for (std::int64_t i = 0; i < size.x * size.y; ++i)
      full.values[std::size_t(i)] = float(gradient(g * size.x + i / size.y, i % size.y));
    verify::add_group(Pass::GradW, g,
                      verify::check_gradient<T>(
                          full, full.values, group_of(q_grad, size.x, g), group_of(s, size.y, g),
                          rounding, verify::GradientRows::Sample, memory_damage({damage})),
                      *options.self_check);
  }
}

#define TESSERA_DENSE_GRADIENT(T)                                                           \
  template bool DenseGradient::run(MatrixView<const T>, MatrixView<const T>, MatrixView<T>, \
                                   const PassOptions&, device::Ledger&);
TESSERA_DENSE_GRADIENT(float)
TESSERA_DENSE_GRADIENT(Half)
TESSERA_DENSE_GRADIENT(BFloat16)
#undef TESSERA_DENSE_GRADIENT

}  // namespace tessera::runtime::internal
