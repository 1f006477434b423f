#include "tessera/host/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/packed_rows.hpp"
#include "tessera/host/internal/layer_state.hpp"
#include "tessera/host/largest_gradients.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/value_range.hpp"

namespace tessera::host {
namespace {

template <class T>
Matrix<float> widened(MatrixView<const T> from) {
  Matrix<float> wide(from.rows, from.cols);
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; ++c) wide(r, c) = float(from(r, c));
  return wide;
}

}  // namespace

verify::Rounding HostLayer::State::rounding_of(Pass pass, std::int64_t z) const {
  const HostCells cut = weights.cells(pass);
  // A result of a product has one partial sum for each cell along the summed axis. A gradient has
  // one for each panel, and one for each lane of the widest vectors.
  constexpr std::int64_t kLanes = 16;
  if (pass == Pass::GradW)
    return {DataType::Float, DataType::Float, kLanes + ceil_div(z, gradient_columns(cut, z).width)};
  if (weights.form(pass) == internal::PassForm::Packed)
    return {problem.data_type, DataType::Float, codelets::kPackedChunk + 1};
  const std::int64_t terms = pass == Pass::Fwd ? problem.size.y : problem.size.x;
  return {problem.data_type, DataType::Float, ceil_div(terms, cut.y) + 1};
}

namespace {

const Problem& checked(const Problem& problem, const HostOptions& options) {
  check_problem(problem);
  if (const auto in_row = options.blocks_in_row;
      in_row && !(*in_row >= 0 && std::isfinite(*in_row)))
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("host layer: blocks_in_row is {}; it must be finite and at least 0", *in_row));
  if (problem.partials_type != DataType::Float)
    throw Error(
        ErrorCode::InvalidArgument,
        "host layer: partial sums of type half are not supported on this computer; use float");
  return problem;
}

}  // namespace

HostLayer::HostLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                     const HostOptions& options)
    : LayerOf(std::make_unique<State>(checked(problem, options),
                                      internal::HostWeights(problem, cpu, executor, options))) {}

namespace {

struct PreparedCells : layer::PreparedUpdate::State {
  internal::HostUpdate update;
};

}  // namespace

std::optional<partitioner::Misfit> HostLayer::State::set_weights(
    std::vector<sparse::CheckedCsr<float>> given) {
  std::vector<sparse::Csr<float>> own;
  for (sparse::CheckedCsr<float>& matrix : given) own.push_back(std::move(matrix).taken());
  weights.set(std::move(own));
  return std::nullopt;
}

std::optional<partitioner::Misfit> HostLayer::State::update_weights(
    const sparse::PatternChange& change, std::int64_t group) {
  weights.commit(weights.prepare(change, group, internal::Places::Unused));
  return std::nullopt;
}

std::unique_ptr<layer::PreparedUpdate::State> HostLayer::State::prepare(
    const sparse::PatternChange& change, std::int64_t group) {
  auto made = std::make_unique<PreparedCells>();
  made->update = weights.prepare(change, group, internal::Places::Kept);
  made->change = made->update.change;
  return made;
}

void HostLayer::State::commit(layer::PreparedUpdate::State& update) {
  weights.commit(std::move(static_cast<PreparedCells&>(update).update));
}

std::int64_t HostLayer::memory_bytes() const { return state().weights.bytes(); }

template <class T>
std::vector<sparse::BlockAt> HostLayer::largest_gradients(std::int64_t k,
                                                          MatrixView<const T> q_grad,
                                                          MatrixView<const T> s,
                                                          codelets::BlockScore score,
                                                          std::int64_t group) {
  const auto call = state().caller.enter_pass("largest_gradients");
  state().checked_groups<T>("largest_gradients");
  const sparse::Csr<float>& taken = weights(group);  // refuses a group that there is not
  const MatrixView<const T> q_rows = state().part("q_grad", q_grad, &Dims::x, group),
                            s_rows = state().part("s", s, &Dims::y, group);
  const std::string name =
      state().problem.size.g == 1 ? "weights" : fmt::format("weights of group {}", group);
  Executor& executor = state().weights.executor();
  if constexpr (std::is_same_v<T, float>) {
    const GradientOperands operands{q_rows, s_rows};
    return host::largest_gradients({taken, {&operands, 1}, k, score, name}, executor);
  } else {
    const Matrix<float> wide_q = widened(q_rows), wide_s = widened(s_rows);
    const GradientOperands operands{wide_q.view(), wide_s.view()};
    return host::largest_gradients({taken, {&operands, 1}, k, score, name}, executor);
  }
}

bool HostLayer::is_dense(Pass pass) const {
  return state().weights.form(pass) == internal::PassForm::Dense;
}

bool HostLayer::is_packed(Pass pass) const {
  return state().weights.form(pass) == internal::PassForm::Packed;
}

HostForecast HostLayer::forecast(Pass pass) const { return state().weights.forecast(pass); }

HostCells HostLayer::cells(Pass pass) const { return state().weights.cells(pass); }

// A part with a value that the type of the layer cannot hold gets back the values that it had.
void HostLayer::State::change_values(const layer::ChangePart& change, std::int64_t group) {
  if (problem.data_type == DataType::Float) return weights.change_values(change, group);
  const auto checked = [&](std::span<float> part, std::int64_t first) {
    // Hot paths allocate nothing from the second call on. `change` may change another layer.
    thread_local std::vector<float> kept;
    std::vector<float> before = std::exchange(kept, {});
    before.assign(part.begin(), part.end());
    change(part, first);
    try {
      sparse::check_range(part, problem.data_type, first);
    } catch (...) {
      std::ranges::copy(before, part.begin());
      throw;
    }
    kept = std::move(before);
  };
  weights.change_values(layer::ChangePart(checked), group);
}

const partitioner::Buckets& HostLayer::buckets(std::int64_t group) const {
  check_group(group);
  return with_type(state().problem.data_type, [&]<class T>(T) -> const partitioner::Buckets& {
    return state().forward_cells<T>("buckets", group).buckets();
  });
}

#define TESSERA_LARGEST(T)                                            \
  template std::vector<sparse::BlockAt> HostLayer::largest_gradients( \
      std::int64_t, MatrixView<const T>, MatrixView<const T>, codelets::BlockScore, std::int64_t);
TESSERA_LARGEST(float)
TESSERA_LARGEST(Half)
TESSERA_LARGEST(BFloat16)
#undef TESSERA_LARGEST

}  // namespace tessera::host
