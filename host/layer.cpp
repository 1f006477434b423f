#include "tessera/host/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/host/internal/weights.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::host {

struct HostLayer::State {
  Problem problem;
  internal::HostWeights weights;
  OneCaller caller = {};

  // Checks a call with operands of type T and returns the groups.
  template <class T>
  std::vector<internal::HostGroup<T>>& checked_groups(std::string_view call, bool has_pass = true);
  // Returns a group's rows of an operand; `side` is the size that gives its rows in each group.
  template <class T>
  MatrixView<T> part(std::string_view name, MatrixView<T> view, std::int64_t Dims::*side,
                     std::int64_t group) const;
  void check_columns(std::string_view name, std::int64_t columns, std::string_view other,
                     std::int64_t other_columns) const;
  // Returns the rounding of a pass over z columns.
  verify::Rounding rounding(Pass pass, std::int64_t z) const;
  template <class T>
  const internal::HostProduct<T>& forward_cells(std::string_view call, std::int64_t group);
  template <class T>
  void check_product(Pass pass, MatrixView<const T> in, MatrixView<const T> out,
                     const verify::Rounding& rounding, verify::Checksums& all) const;
  template <class T>
  void check_gradient(std::span<const float> gradients, MatrixView<const T> q_grad,
                      MatrixView<const T> s, const verify::Rounding& rounding,
                      verify::Checksums& all) const;
};

template <class T>
std::vector<internal::HostGroup<T>>& HostLayer::State::checked_groups(std::string_view call,
                                                                      bool has_pass) {
  if (data_type_of<T>() != problem.data_type)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: operands are {} but the layer is {}", call,
                            to_string(data_type_of<T>()), to_string(problem.data_type)));
  if (!has_pass)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: the problem does not include this pass", call));
  if (weights.empty())
    throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", call));
  return weights.groups<T>();
}

template <class T>
MatrixView<T> HostLayer::State::part(std::string_view name, MatrixView<T> view,
                                     std::int64_t Dims::*side, std::int64_t group) const {
  const std::int64_t rows = problem.size.*side;
  if (view.rows != problem.size.g * rows || view.cols < 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is {} x {}; this layer needs {} rows and any number of columns",
                            name, view.rows, view.cols, problem.size.g * rows));
  return view.sub({group * rows, (group + 1) * rows}, {0, view.cols});
}

void HostLayer::State::check_columns(std::string_view name, std::int64_t columns,
                                     std::string_view other, std::int64_t other_columns) const {
  if (columns != other_columns)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} has {} columns and {} has {}; both must have those of the batch",
                            name, columns, other, other_columns));
}

verify::Rounding HostLayer::State::rounding(Pass pass, std::int64_t z) const {
  const HostCells cut = weights.cells(pass);
  // A result of a product has one partial sum for each cell along the summed axis. A gradient has
  // one for each panel, and one for each lane of the widest vectors.
  constexpr std::int64_t kLanes = 16;
  if (pass == Pass::GradW)
    return {DataType::Float, DataType::Float, kLanes + ceil_div(z, gradient_columns(cut, z).width)};
  const std::int64_t terms = pass == Pass::Fwd ? problem.size.y : problem.size.x;
  return {problem.data_type, DataType::Float, ceil_div(terms, cut.y) + 1};
}

template <class T>
const internal::HostProduct<T>& HostLayer::State::forward_cells(std::string_view call,
                                                                std::int64_t group) {
  auto& groups = checked_groups<T>(call);
  weights.given(group);  // throws for a group that the layer does not have
  const internal::HostProduct<T>* const cells = groups[std::size_t(group)].forward_cells();
  if (cells == nullptr)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: the forward pass is dense, so there are no buckets; use weights() "
                            "and set_values(), or DenseChoice::Never",
                            call));
  return *cells;
}

template <class T>
void HostLayer::State::check_product(Pass pass, MatrixView<const T> in, MatrixView<const T> out,
                                     const verify::Rounding& rounding,
                                     verify::Checksums& all) const {
  const bool is_fwd = pass == Pass::Fwd;
  for (std::int64_t g = 0; g < problem.size.g; ++g) {
    const auto in_g = part("in", in, is_fwd ? &Dims::y : &Dims::x, g);
    const auto out_g = part("out", out, is_fwd ? &Dims::x : &Dims::y, g);
    const sparse::Csr<float>& given = weights.given(g);
    verify::add_group(
        pass, g,
        is_fwd ? verify::check_product<T>(given, in_g, out_g, rounding)
               : verify::check_product<T>(sparse::transpose(given), in_g, out_g, rounding),
        all);
  }
}

template <class T>
void HostLayer::State::check_gradient(std::span<const float> gradients, MatrixView<const T> q_grad,
                                      MatrixView<const T> s, const verify::Rounding& rounding,
                                      verify::Checksums& all) const {
  for (std::int64_t g = 0; g < problem.size.g; ++g) {
    sparse::Csr<float> gradient = weights.given(g);
    const auto own = gradients.first(gradient.values.size());
    std::copy(own.begin(), own.end(), gradient.values.begin());
    gradients = gradients.subspan(own.size());
    verify::add_group(Pass::GradW, g,
                      verify::check_gradient<T>(gradient, part("q_grad", q_grad, &Dims::x, g),
                                                part("s", s, &Dims::y, g), rounding),
                      all);
  }
}

HostLayer::HostLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                     const HostOptions& options) {
  check_problem(problem);
  if (problem.partials_type != DataType::Float)
    throw Error(
        ErrorCode::InvalidArgument,
        "host layer: partial sums of type half are not supported on this computer; use float");
  state_ = std::make_unique<State>(
      State{problem, internal::HostWeights(problem, cpu, executor, options)});
}

HostLayer::~HostLayer() = default;
HostLayer::HostLayer(HostLayer&&) noexcept = default;
HostLayer& HostLayer::operator=(HostLayer&&) noexcept = default;

std::optional<partitioner::Misfit> HostLayer::set_weights(
    std::span<const sparse::Csr<float>> weights) {
  const auto call = state_->caller.enter("set_weights");
  state_->weights.set(weights);
  return std::nullopt;
}

std::optional<partitioner::Misfit> HostLayer::set_weights(const sparse::Csr<float>& weights) {
  return set_weights({&weights, 1});
}

std::optional<partitioner::Misfit> HostLayer::update_weights(const sparse::PatternChange& change,
                                                             std::int64_t group) {
  const auto call = state_->caller.enter("update_weights");
  state_->weights.update(change, group);
  return std::nullopt;
}

void HostLayer::set_values(std::span<const float> values, std::int64_t group) {
  const auto call = state_->caller.enter("set_values");
  state_->weights.set_values(values, group);
}

std::int64_t HostLayer::batch() const { return state_->problem.size.z; }

std::int64_t HostLayer::values() const { return state_->weights.values(); }

const sparse::Csr<float>& HostLayer::weights(std::int64_t group) const {
  return state_->weights.given(group);
}

bool HostLayer::is_dense(Pass pass) const { return state_->weights.is_dense(pass); }

HostForecast HostLayer::forecast(Pass pass) const { return state_->weights.forecast(pass); }

HostCells HostLayer::cells(Pass pass) const { return state_->weights.cells(pass); }

verify::Rounding HostLayer::rounding(Pass pass) const { return state_->rounding(pass, batch()); }

template <class T>
bool HostLayer::forward(MatrixView<const T> s, MatrixView<T> q, const verify::RunOptions& options,
                        HostTimes& times) {
  if (options.repair)
    return verify::run_and_repair(
        options, [&](const verify::RunOptions& once) { return forward<T>(s, q, once, times); });
  const auto call = state_->caller.enter("forward");
  auto& groups = state_->checked_groups<T>("forward");
  state_->check_columns("s", s.cols, "q", q.cols);
  check_no_overlap("forward", footprint("q", q), std::array{footprint("s", s)});
  internal::PassControl control(options);
  times = {};
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto in = state_->part("s", s, &Dims::y, g);
    const auto out = state_->part("q", q, &Dims::x, g);
    if (!groups[std::size_t(g)].forward(in, out, control, times)) return false;
  }
  if (options.self_check != nullptr)
    state_->check_product<T>(Pass::Fwd, s, q, state_->rounding(Pass::Fwd, s.cols),
                             *options.self_check);
  return true;
}

template <class T>
bool HostLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                       const verify::RunOptions& options, HostTimes& times) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const verify::RunOptions& once) {
      return grad_a<T>(q_grad, s_grad, once, times);
    });
  const auto call = state_->caller.enter("grad_a");
  auto& groups = state_->checked_groups<T>("grad_a", state_->problem.grad_a);
  state_->check_columns("q_grad", q_grad.cols, "s_grad", s_grad.cols);
  check_no_overlap("grad_a", footprint("s_grad", s_grad), std::array{footprint("q_grad", q_grad)});
  internal::PassControl control(options);
  times = {};
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto in = state_->part("q_grad", q_grad, &Dims::x, g);
    const auto out = state_->part("s_grad", s_grad, &Dims::y, g);
    if (!groups[std::size_t(g)].grad_a(in, out, control, times)) return false;
  }
  if (options.self_check != nullptr)
    state_->check_product<T>(Pass::GradA, q_grad, s_grad,
                             state_->rounding(Pass::GradA, q_grad.cols), *options.self_check);
  return true;
}

template <class T>
bool HostLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                       std::span<float> gradients, const verify::RunOptions& options,
                       HostTimes& times) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const verify::RunOptions& once) {
      return grad_w<T>(q_grad, s, gradients, once, times);
    });
  const auto call = state_->caller.enter("grad_w");
  auto& groups = state_->checked_groups<T>("grad_w", state_->problem.grad_w);
  if (std::ssize(gradients) != values())
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("grad_w: the output has space for {} gradients; this layer has {} values",
                    gradients.size(), values()));
  state_->check_columns("q_grad", q_grad.cols, "s", s.cols);
  check_no_overlap("grad_w", footprint("gradients", gradients),
                   std::array{footprint("q_grad", q_grad), footprint("s", s)});
  internal::PassControl control(options);
  times = {};
  std::size_t first = 0;
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto in_q = state_->part("q_grad", q_grad, &Dims::x, g);
    const auto in_s = state_->part("s", s, &Dims::y, g);
    const auto own = gradients.subspan(first, weights(g).values.size());
    if (!groups[std::size_t(g)].grad_w(in_q, in_s, own, control, times)) return false;
    first += own.size();
  }
  if (options.self_check != nullptr)
    state_->check_gradient<T>(gradients, q_grad, s, state_->rounding(Pass::GradW, s.cols),
                              *options.self_check);
  return true;
}

template <class T>
HostTimes HostLayer::forward(MatrixView<const T> s, MatrixView<T> q) {
  HostTimes times;
  static_cast<void>(forward<T>(s, q, {}, times));  // it cannot be stopped
  return times;
}

template <class T>
HostTimes HostLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  HostTimes times;
  static_cast<void>(grad_a<T>(q_grad, s_grad, {}, times));
  return times;
}

template <class T>
HostTimes HostLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients) {
  HostTimes times;
  static_cast<void>(grad_w<T>(q_grad, s, gradients, {}, times));
  return times;
}

const partitioner::Buckets& HostLayer::buckets(std::int64_t group) const {
  return with_type(state_->problem.data_type, [&]<class T>(T) -> const partitioner::Buckets& {
    return state_->forward_cells<T>("buckets", group).buckets();
  });
}

template <class T>
std::span<const T> HostLayer::encoded_values(std::int64_t group) const {
  return state_->forward_cells<T>("encoded_values", group).values();
}

template <class T>
std::span<const T> HostLayer::encoded_gradients(std::span<const float> gradients,
                                                std::int64_t group) {
  const auto call = state_->caller.enter("encoded_gradients");
  state_->forward_cells<T>("encoded_gradients", group);  // throws if there are none
  return state_->checked_groups<T>("encoded_gradients")[std::size_t(group)].encode_gradients(
      gradients);
}

template <class T>
void HostLayer::set_encoded_values(std::span<const T> values, std::int64_t group) {
  const auto call = state_->caller.enter("set_encoded_values");
  const internal::HostProduct<T>& cells = state_->forward_cells<T>("set_encoded_values", group);
  state_->weights.set_values(partitioner::from_bucket_order<float, T>(cells.buckets(), values),
                             group);
}

#define TESSERA_PASSES(T)                                                                         \
  template HostTimes HostLayer::forward(MatrixView<const T>, MatrixView<T>);                      \
  template HostTimes HostLayer::grad_a(MatrixView<const T>, MatrixView<T>);                       \
  template HostTimes HostLayer::grad_w(MatrixView<const T>, MatrixView<const T>,                  \
                                       std::span<float>);                                         \
  template bool HostLayer::forward(MatrixView<const T>, MatrixView<T>, const verify::RunOptions&, \
                                   HostTimes&);                                                   \
  template bool HostLayer::grad_a(MatrixView<const T>, MatrixView<T>, const verify::RunOptions&,  \
                                  HostTimes&);                                                    \
  template bool HostLayer::grad_w(MatrixView<const T>, MatrixView<const T>, std::span<float>,     \
                                  const verify::RunOptions&, HostTimes&);                         \
  template std::span<const T> HostLayer::encoded_values(std::int64_t) const;                      \
  template std::span<const T> HostLayer::encoded_gradients(std::span<const float>, std::int64_t); \
  template void HostLayer::set_encoded_values(std::span<const T>, std::int64_t);
TESSERA_PASSES(float)
TESSERA_PASSES(Half)
TESSERA_PASSES(BFloat16)
#undef TESSERA_PASSES

}  // namespace tessera::host
