#include "tessera/host/layer.hpp"

#include <fmt/format.h>

#include <variant>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/host/internal/dense.hpp"
#include "tessera/host/internal/gradient.hpp"
#include "tessera/host/internal/product.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::host {
namespace {

// One group.
template <class T>
struct Passes {
  internal::HostProduct<T> fwd, grad_a;
  internal::HostGradient<T> grad_w;
  internal::HostDense<T> dense_fwd, dense_grad_a, dense_grad_w;  // instead, where that was chosen
};

HostTimes& operator+=(HostTimes& sum, const HostTimes& more) {
  sum.seconds += more.seconds;
  sum.copy_seconds += more.copy_seconds;
  sum.kernel_seconds += more.kernel_seconds;
  return sum;
}

}  // namespace

struct HostLayer::State {
  Problem problem;
  host::HostCpu cpu;
  HostOptions options;
  int threads = 1;
  std::int64_t blocks = 0;  // of the first group
  bool dense[3] = {};       // by pass
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
  bool is_dense(Pass pass) const { return dense[std::size_t(pass)]; }
  HostProblem host_problem() const;
  HostSetting setting() const {
    return {cpu, threads, options.rates ? *options.rates : default_host_rates()};
  }
  void choose_dense();
  template <class T>
  void set_passes(const sparse::Csr<float>& weights, Passes<T>& passes);
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
                fmt::format("{}: the problem does not include this pass", pass));
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
                fmt::format("{} matrices were given; this layer has {} groups", weights.size(),
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

void HostLayer::State::set_pattern(const sparse::Csr<float>& weights, std::int64_t group) {
  const auto g = std::size_t(group);
  if (problem.grad_a) turned_at[g] = sparse::transpose_order(weights);
  std::visit([&](auto& all) { set_passes(weights, all[g]); }, groups);
}

template <class T>
void HostLayer::State::set_passes(const sparse::Csr<float>& weights, Passes<T>& passes) {
  if (is_dense(Pass::Fwd))
    passes.dense_fwd.set_pattern(weights, false);
  else
    passes.fwd.set_pattern(weights);
  if (problem.grad_a && is_dense(Pass::GradA))
    passes.dense_grad_a.set_pattern(sparse::transpose(weights), false);
  else if (problem.grad_a)
    passes.grad_a.set_pattern(sparse::transpose(weights));
  if (problem.grad_w && is_dense(Pass::GradW))
    passes.dense_grad_w.set_pattern(weights, true);
  else if (problem.grad_w)
    passes.grad_w.set_pattern(weights);
}

// All groups by the first one's blocks, so that a report has one answer.
void HostLayer::State::choose_dense() {
  const HostProblem one = host_problem();
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    dense[std::size_t(pass)] =
        options.dense == DenseChoice::Always ||
        (options.dense == DenseChoice::Auto && forecast_dense(pass, one, setting()).seconds() <
                                                   forecast_sparse(pass, one, setting()).seconds());
  }
}

HostProblem HostLayer::State::host_problem() const {
  HostProblem one{problem.size_in_blocks(), problem.block, blocks, problem.data_type};
  one.size.g = 1;
  return one;
}

void HostLayer::State::set_values(std::span<const float> given, std::int64_t group) {
  const auto g = std::size_t(group);
  if (problem.grad_a) {
    turned.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) turned[i] = given[std::size_t(turned_at[g][i])];
  }
  std::visit(
      [&](auto& all) {
        if (is_dense(Pass::Fwd))
          all[g].dense_fwd.set_values(given);
        else
          all[g].fwd.set_values(given);
        if (problem.grad_a && is_dense(Pass::GradA))
          all[g].dense_grad_a.set_values(turned);
        else if (problem.grad_a)
          all[g].grad_a.set_values(turned);
      },
      groups);
}

HostLayer::HostLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                     const HostOptions& options) {
  check_problem(problem);
  if (problem.partials_type != DataType::Float)
    throw Error(
        ErrorCode::InvalidArgument,
        "host layer: partial sums of type half are not supported on this computer; use float");
  state_ = std::make_unique<State>();
  state_->problem = problem;
  state_->cpu = cpu;
  state_->options = options;
  state_->threads = executor.threads();
  state_->turned_at.resize(std::size_t(problem.size.g));
  const auto fill = [&]<class T>(std::vector<Passes<T>> all) {
    const std::int64_t z = problem.size.z;
    const internal::HostDense<T> dense(z, cpu, executor, options.own_dense_kernel);
    for (std::int64_t g = 0; g < problem.size.g; ++g)
      all.push_back({internal::HostProduct<T>(z, cpu, executor),
                     internal::HostProduct<T>(z, cpu, executor),
                     internal::HostGradient<T>(z, cpu, executor), dense, dense, dense});
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
  state_->blocks = weights[0].blocks();
  state_->choose_dense();
  std::vector<std::int64_t> values;
  for (std::size_t g = 0; g < weights.size(); ++g) {
    state_->set_pattern(weights[g], static_cast<std::int64_t>(g));
    state_->set_values(weights[g].values, static_cast<std::int64_t>(g));
    values.push_back(std::ssize(weights[g].values));
  }
  state_->values = std::move(values);
}

void HostLayer::set_weights(const sparse::Csr<float>& weights) { set_weights({&weights, 1}); }

void HostLayer::set_values(std::span<const float> values, std::int64_t group) {
  const State& state = *state_;
  if (group < 0 || group >= std::ssize(state.values) ||
      std::ssize(values) != state.values[std::size_t(group)])
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("set_values: {} values for group {}; this layer has {} groups, and "
                            "each needs as many values as set_weights stored",
                            values.size(), group, state.values.size()));
  state_->set_values(values, group);
}

std::int64_t HostLayer::values() const {
  std::int64_t sum = 0;
  for (const std::int64_t n : state_->values) sum += n;
  return sum;
}

bool HostLayer::is_dense(Pass pass) const { return state_->is_dense(pass); }

HostForecast HostLayer::forecast(Pass pass) const {
  const HostForecast one = state_->is_dense(pass)
                               ? forecast_dense(pass, state_->host_problem(), state_->setting())
                               : forecast_sparse(pass, state_->host_problem(), state_->setting());
  return double(state_->problem.size.g) * one;
}

HostCells HostLayer::cells(Pass pass) const {
  return cells_of(pass, state_->host_problem(), state_->cpu);
}

verify::Rounding HostLayer::rounding(Pass pass) const {
  const Dims& size = state_->problem.size;
  const HostCells cut = cells(pass);
  // One partial sum a cell along the sum; of gradients a panel, and every lane of the widest
  // vectors.
  constexpr std::int64_t kLanes = 16;
  if (pass == Pass::GradW)
    return {DataType::Float, DataType::Float, kLanes + ceil_div(size.z, cut.z)};
  const std::int64_t terms = pass == Pass::Fwd ? size.y : size.x;
  return {state_->problem.data_type, DataType::Float, ceil_div(terms, cut.y) + 1};
}

template <class T>
HostTimes HostLayer::forward(MatrixView<const T> s, MatrixView<T> q) {
  HostTimes times;
  auto& groups = state_->checked_groups<T>(true, "forward");
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    Passes<T>& passes = groups[std::size_t(g)];
    const auto in = state_->part("s", s, &Dims::y, g);
    const auto out = state_->part("q", q, &Dims::x, g);
    times +=
        state_->is_dense(Pass::Fwd) ? passes.dense_fwd.product(in, out) : passes.fwd.run(in, out);
  }
  return times;
}

template <class T>
HostTimes HostLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  HostTimes times;
  auto& groups = state_->checked_groups<T>(state_->problem.grad_a, "grad_a");
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    Passes<T>& passes = groups[std::size_t(g)];
    const auto in = state_->part("q_grad", q_grad, &Dims::x, g);
    const auto out = state_->part("s_grad", s_grad, &Dims::y, g);
    times += state_->is_dense(Pass::GradA) ? passes.dense_grad_a.product(in, out)
                                           : passes.grad_a.run(in, out);
  }
  return times;
}

template <class T>
HostTimes HostLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients) {
  HostTimes times;
  auto& groups = state_->checked_groups<T>(state_->problem.grad_w, "grad_w");
  if (std::ssize(gradients) != values())
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("grad_w: the output has space for {} gradients; this layer has {} values",
                    gradients.size(), values()));
  std::size_t first = 0;
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto count = std::size_t(state_->values[std::size_t(g)]);
    Passes<T>& passes = groups[std::size_t(g)];
    const auto in_q = state_->part("q_grad", q_grad, &Dims::x, g);
    const auto in_s = state_->part("s", s, &Dims::y, g);
    const auto own = gradients.subspan(first, count);
    times += state_->is_dense(Pass::GradW) ? passes.dense_grad_w.gradient(in_q, in_s, own)
                                           : passes.grad_w.run(in_q, in_s, own);
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

}  // namespace tessera::host
