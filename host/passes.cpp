// The passes of HostLayer.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/host/internal/layer_state.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::host {
namespace {

using internal::Epilogue;

// Applies an epilogue to a result that a self-check has read without it.
template <class T>
void apply_to_all(const Epilogue<T>& after, MatrixView<T> out) {
  if (after.empty()) return;
  std::vector<float> row(std::size_t(out.cols));
  for (std::int64_t r = 0; r < out.rows; ++r) {
    for (std::int64_t c = 0; c < out.cols; ++c) row[std::size_t(c)] = float(out(r, c));
    after.apply(row.data(), out.cols, {r, r + 1}, {0, out.cols});
    for (std::int64_t c = 0; c < out.cols; ++c) out(r, c) = T(row[std::size_t(c)]);
  }
}

}  // namespace

template <class T>
void HostLayer::State::check_product(Pass pass, MatrixView<const T> in, MatrixView<const T> out,
                                     verify::Checksums& all) {
  const bool is_fwd = pass == Pass::Fwd;
  const verify::Rounding allowed = rounding_of(pass, in.cols);
  for (std::int64_t g = 0; g < problem.size.g; ++g) {
    const auto in_g = part("in", in, is_fwd ? &Dims::y : &Dims::x, g);
    const auto out_g = part("out", out, is_fwd ? &Dims::x : &Dims::y, g);
    const verify::ProductSums& sums = weights.product_sums<T>(pass, g);
    verify::add_group(pass, g,
                      verify::check_product<T>(weights.given(g), sums, in_g, out_g, allowed, {},
                                               &weights.executor()),
                      all);
  }
}

template <class T>
void HostLayer::State::check_gradient(std::span<const float> gradients, MatrixView<const T> q_grad,
                                      MatrixView<const T> s, verify::Checksums& all) const {
  for (std::int64_t g = 0; g < problem.size.g; ++g) {
    const sparse::Csr<float>& pattern = weights.given(g);
    const auto own = gradients.first(pattern.values.size());
    gradients = gradients.subspan(own.size());
    verify::add_group(
        Pass::GradW, g,
        verify::check_gradient<T>(pattern, own, part("q_grad", q_grad, &Dims::x, g),
                                  part("s", s, &Dims::y, g), rounding_of(Pass::GradW, s.cols)),
        all);
  }
}

template <class T>
Epilogue<T> HostLayer::State::epilogue(Pass pass, const PassOptions& options,
                                       std::int64_t group) const {
  Epilogue<T> after{.activation = options.activation};
  const auto rows = std::size_t(problem.size.x);
  if (!options.bias.empty()) after.bias = options.bias.subspan(std::size_t(group) * rows, rows);
  if (pass == Pass::GradA && !options.where_positive.empty())
    after.where_positive = part("where_positive", options.where_positive.as<T>(), &Dims::y, group);
  return after;
}

// The self-check compares the product, so what comes after it waits until then.
template <class T>
bool HostLayer::State::run_product(Pass pass, MatrixView<const T> in, MatrixView<T> out,
                                   const PassOptions& options, HostTimes& times) {
  const bool is_forward = pass == Pass::Fwd, checks = options.self_check != nullptr;
  const auto of_group = [&](std::int64_t g) {
    return part("out", out, is_forward ? &Dims::x : &Dims::y, g);
  };
  internal::PassControl control(options);
  times = {};
  auto& groups = weights.groups<T>();
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto from = part("in", in, is_forward ? &Dims::y : &Dims::x, g);
    const Epilogue<T> after = checks ? Epilogue<T>() : epilogue<T>(pass, options, g);
    auto& group = groups[std::size_t(g)];
    const bool finished =
        is_forward ? group.forward(weights.given(g), from, of_group(g), after, control, times)
                   : group.grad_a(from, of_group(g), after, control, times);
    if (!finished) return false;
  }
  if (!checks) return true;
  check_product<T>(pass, in, out, *options.self_check);
  for (std::int64_t g = 0; g < std::ssize(groups); ++g)
    apply_to_all(epilogue<T>(pass, options, g), of_group(g));
  return true;
}

template <class T>
bool HostLayer::State::run_groups(MatrixView<const T> q_grad, MatrixView<const T> s,
                                  std::span<float> gradients, Accumulate accumulate,
                                  internal::PassControl& control, HostTimes& times) {
  auto& groups = weights.groups<T>();
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto in_q = part("q_grad", q_grad, &Dims::x, g);
    const auto in_s = part("s", s, &Dims::y, g);
    const auto own = gradients.first(weights.given(g).values.size());
    if (!groups[std::size_t(g)].grad_w(weights.given(g), {in_q, in_s}, own, accumulate, control,
                                       times))
      return false;
    gradients = gradients.subspan(own.size());
  }
  return true;
}

template <class T>
bool HostLayer::State::run_gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                                    std::span<float> gradients, const PassOptions& options,
                                    HostTimes& times) {
  internal::PassControl control(options);
  times = {};
  if (options.self_check == nullptr)
    return run_groups(q_grad, s, gradients, options.accumulate, control, times);
  // The check compares the gradients of this pass alone. Those of the caller change only after it
  // agrees, so that a repair adds one pass.
  std::vector<float> own(options.accumulate == Accumulate::Yes ? gradients.size() : 0);
  const std::span<float> result = own.empty() ? gradients : std::span<float>(own);
  if (!run_groups(q_grad, s, result, Accumulate::No, control, times)) return false;
  check_gradient<T>(result, q_grad, s, *options.self_check);
  for (std::size_t i = 0; i < own.size(); ++i) gradients[i] += own[i];
  return true;
}

bool HostLayer::State::compute(Pass pass, const layer::Operands& operands,
                               const PassOptions& options, HostTimes& times) {
  return with_type(problem.data_type, [&]<class T>(T) {
    if (pass == Pass::GradW)
      return run_gradient(operands.in.as<T>(), operands.in_s.as<T>(), operands.gradients, options,
                          times);
    return run_product(pass, operands.in.as<T>(), operands.out.as<T>(), options, times);
  });
}

layer::LayerFacts HostLayer::State::facts() const {
  const Dims& size = problem.size;
  return {.problem = problem,
          .passes = {true, problem.grad_a, problem.grad_w},
          .has_weights = !weights.empty(),
          .values = weights.values(),
          .output_rows = size.g * size.x,
          .input_rows = size.g * size.y,
          .any_batch = true,
          .works_on_results = true};
}

}  // namespace tessera::host
