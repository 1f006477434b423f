#include "tessera/runtime/host_layer.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/runtime/internal/host_gradient.hpp"
#include "tessera/runtime/internal/host_product.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::inline v0::runtime {
namespace {

// One group.
template <class T>
struct Passes {
  internal::HostProduct<T> fwd, grad_a;
  internal::HostGradient<T> grad_w;
};

HostTimes& operator+=(HostTimes& sum, const HostTimes& more) {
  sum.seconds += more.seconds;
  sum.copy_seconds += more.copy_seconds;
  sum.kernel_seconds += more.kernel_seconds;
  return sum;
}

}  // namespace

struct HostLayer::State {
  planner::Problem problem;
  device::HostCpu cpu;
  std::int64_t blocks = 0;  // of the first group
  std::variant<std::vector<Passes<float>>, std::vector<Passes<Half>>, std::vector<Passes<BFloat16>>>
      groups;
  std::vector<std::int64_t> values;                  // of each group; empty before set_weights
  std::vector<std::vector<std::int64_t>> turned_at;  // where transpose(R) has each value of R
  std::vector<float> turned;

  template <class T>
  std::vector<Passes<T>>& checked_groups(bool has_pass, const char* pass);
  template <class T>
  MatrixView<T> part(const char* name, MatrixView<T> view, std::int64_t Dims::*side,
                     std::int64_t group) const;
  void check_weights(std::span<const sparse::Csr<float>> weights) const;
  void set_pattern(const sparse::Csr<float>& weights, std::int64_t group);
  void set_values(std::span<const float> given, std::int64_t group);
};

template <class T>
std::vector<Passes<T>>& HostLayer::State::checked_groups(bool has_pass, const char* pass) {
  if (data_type_of<T>() != problem.data_type)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: operands are {} but the layer is {}", pass,
                            to_string(data_type_of<T>()), to_string(problem.data_type)));
  if (!has_pass)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: the problem was given without this pass", pass));
  if (values.empty())
    throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", pass));
  return std::get<std::vector<Passes<T>>>(groups);
}

template <class T>
MatrixView<T> HostLayer::State::part(const char* name, MatrixView<T> view, std::int64_t Dims::*side,
                                     std::int64_t group) const {
  const std::int64_t rows = problem.size.*side;
  if (view.rows != problem.size.g * rows || view.cols != problem.size.z)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is {} x {}; this layer needs {} x {}", name, view.rows, view.cols,
                            problem.size.g * rows, problem.size.z));
  return view.sub({group * rows, (group + 1) * rows}, {0, view.cols});
}

void HostLayer::State::check_weights(std::span<const sparse::Csr<float>> weights) const {
  if (std::ssize(weights) != problem.size.g)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} matrices are given; this layer has {} groups", weights.size(),
                            problem.size.g));
  const Dims size = problem.size_in_blocks();
  for (const sparse::Csr<float>& w : weights)
    if (w.rows != size.x || w.cols != size.y || w.block != problem.block)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("the weights are {} x {} in blocks of {} x {}; this layer needs {} x "
                              "{} in blocks of {} x {}",
                              w.rows, w.cols, w.block.rows, w.block.cols, size.x, size.y,
                              problem.block.rows, problem.block.cols));
}

// transpose() moves values and does not look at them, so numbers in their place show the way.
// Blocks are turned too: positions are found value by value.
void HostLayer::State::set_pattern(const sparse::Csr<float>& weights, std::int64_t group) {
  sparse::Csr<double> places{weights.rows,      weights.cols, weights.block,
                             weights.row_begin, weights.col,  {}};
  const auto g = std::size_t(group);
  if (problem.grad_a) {
    for (std::size_t i = 0; i < weights.values.size(); ++i) places.values.push_back(double(i));
    const sparse::Csr<double> back = sparse::transpose(places);
    turned_at[g].resize(back.values.size());
    for (std::size_t i = 0; i < back.values.size(); ++i)
      turned_at[g][i] = static_cast<std::int64_t>(back.values[i]);
  }
  std::visit(
      [&](auto& all) {
        auto& passes = all[g];
        passes.fwd.set_pattern(weights);
        if (problem.grad_a) passes.grad_a.set_pattern(sparse::transpose(weights));
        if (problem.grad_w) passes.grad_w.set_pattern(weights);
      },
      groups);
}

void HostLayer::State::set_values(std::span<const float> given, std::int64_t group) {
  const auto g = std::size_t(group);
  if (problem.grad_a) {
    turned.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) turned[i] = given[std::size_t(turned_at[g][i])];
  }
  std::visit(
      [&](auto& all) {
        all[g].fwd.set_values(given);
        if (problem.grad_a) all[g].grad_a.set_values(turned);
      },
      groups);
}

HostLayer::HostLayer(const planner::Problem& problem, const device::HostCpu& cpu,
                     Executor& executor) {
  planner::check_problem(problem);
  if (problem.partials_type != DataType::Float)
    throw Error(ErrorCode::InvalidArgument,
                "host layer: sums are half; this computer adds in float only, so ask for that");
  if (problem.data_type == DataType::BFloat16)
    throw Error(ErrorCode::InvalidArgument,
                "host layer: elements are bfloat16; this computer takes float and half");
  state_ = std::make_unique<State>();
  state_->problem = problem;
  state_->cpu = cpu;
  state_->turned_at.resize(std::size_t(problem.size.g));
  const auto fill = [&]<class T>(std::vector<Passes<T>> all) {
    const std::int64_t z = problem.size.z;
    for (std::int64_t g = 0; g < problem.size.g; ++g)
      all.push_back({internal::HostProduct<T>(z, cpu, executor),
                     internal::HostProduct<T>(z, cpu, executor),
                     internal::HostGradient<T>(z, cpu, executor)});
    state_->groups = std::move(all);
  };
  with_type(problem.data_type, [&]<class T>(T) { fill(std::vector<Passes<T>>()); });
}

HostLayer::~HostLayer() = default;
HostLayer::HostLayer(HostLayer&&) noexcept = default;
HostLayer& HostLayer::operator=(HostLayer&&) noexcept = default;

void HostLayer::set_weights(std::span<const sparse::Csr<float>> weights) {
  state_->check_weights(weights);
  state_->values.clear();
  std::vector<std::int64_t> values;
  for (std::size_t g = 0; g < weights.size(); ++g) {
    state_->set_pattern(weights[g], static_cast<std::int64_t>(g));
    state_->set_values(weights[g].values, static_cast<std::int64_t>(g));
    values.push_back(std::ssize(weights[g].values));
  }
  state_->values = std::move(values);
  state_->blocks = weights[0].blocks();
}

void HostLayer::set_weights(const sparse::Csr<float>& weights) { set_weights({&weights, 1}); }

void HostLayer::set_values(std::span<const float> values, std::int64_t group) {
  const State& state = *state_;
  if (group < 0 || group >= std::ssize(state.values) ||
      std::ssize(values) != state.values[std::size_t(group)])
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("set_values: {} values for group {}; this layer has {} groups, and a "
                            "group as many values as set_weights gave it",
                            values.size(), group, state.values.size()));
  state_->set_values(values, group);
}

std::int64_t HostLayer::values() const {
  std::int64_t sum = 0;
  for (const std::int64_t n : state_->values) sum += n;
  return sum;
}

HostCells HostLayer::cells(planner::Pass pass) const {
  const planner::Problem& p = state_->problem;
  HostProblem product{p.size_in_blocks(), p.block, state_->blocks, p.data_type};
  product.size.g = 1;
  if (pass == planner::Pass::GradW) return gradient_cells(product, state_->cpu);
  if (pass == planner::Pass::GradA) {
    std::swap(product.size.x, product.size.y);
    std::swap(product.block.rows, product.block.cols);
  }
  return product_cells(product, state_->cpu);
}

template <class T>
HostTimes HostLayer::forward(MatrixView<const T> s, MatrixView<T> q) {
  HostTimes times;
  auto& groups = state_->checked_groups<T>(true, "forward");
  for (std::int64_t g = 0; g < std::ssize(groups); ++g)
    times += groups[std::size_t(g)].fwd.run(state_->part("s", s, &Dims::y, g),
                                            state_->part("q", q, &Dims::x, g));
  return times;
}

template <class T>
HostTimes HostLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  HostTimes times;
  auto& groups = state_->checked_groups<T>(state_->problem.grad_a, "grad_a");
  for (std::int64_t g = 0; g < std::ssize(groups); ++g)
    times += groups[std::size_t(g)].grad_a.run(state_->part("q_grad", q_grad, &Dims::x, g),
                                               state_->part("s_grad", s_grad, &Dims::y, g));
  return times;
}

template <class T>
HostTimes HostLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients) {
  HostTimes times;
  auto& groups = state_->checked_groups<T>(state_->problem.grad_w, "grad_w");
  if (std::ssize(gradients) != values())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("grad_w: room for {} gradients; this layer has {} values",
                            gradients.size(), values()));
  std::size_t first = 0;
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto count = std::size_t(state_->values[std::size_t(g)]);
    times += groups[std::size_t(g)].grad_w.run(state_->part("q_grad", q_grad, &Dims::x, g),
                                               state_->part("s", s, &Dims::y, g),
                                               gradients.subspan(first, count));
    first += count;
  }
  return times;
}

template HostTimes HostLayer::forward(MatrixView<const float>, MatrixView<float>);
template HostTimes HostLayer::forward(MatrixView<const Half>, MatrixView<Half>);
template HostTimes HostLayer::forward(MatrixView<const BFloat16>, MatrixView<BFloat16>);
template HostTimes HostLayer::grad_a(MatrixView<const float>, MatrixView<float>);
template HostTimes HostLayer::grad_a(MatrixView<const Half>, MatrixView<Half>);
template HostTimes HostLayer::grad_a(MatrixView<const BFloat16>, MatrixView<BFloat16>);
template HostTimes HostLayer::grad_w(MatrixView<const float>, MatrixView<const float>,
                                     std::span<float>);
template HostTimes HostLayer::grad_w(MatrixView<const Half>, MatrixView<const Half>,
                                     std::span<float>);
template HostTimes HostLayer::grad_w(MatrixView<const BFloat16>, MatrixView<const BFloat16>,
                                     std::span<float>);

}  // namespace tessera::inline v0::runtime
