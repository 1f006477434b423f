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
  const verify::Rounding allowed = rounding(pass, in.cols);
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
    sparse::Csr<float> gradient = weights.given(g);
    const auto own = gradients.first(gradient.values.size());
    std::copy(own.begin(), own.end(), gradient.values.begin());
    gradients = gradients.subspan(own.size());
    verify::add_group(
        Pass::GradW, g,
        verify::check_gradient<T>(gradient, part("q_grad", q_grad, &Dims::x, g),
                                  part("s", s, &Dims::y, g), rounding(Pass::GradW, s.cols)),
        all);
  }
}

template <class T>
Epilogue<T> HostLayer::State::epilogue(const ForwardOptions& after, std::int64_t group) const {
  const std::int64_t rows = problem.size.x;
  if (!after.bias.empty() && std::ssize(after.bias) != problem.size.g * rows)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("forward: the bias has {} numbers; this layer has {} rows of results",
                            after.bias.size(), problem.size.g * rows));
  const auto bias = after.bias.empty()
                        ? after.bias
                        : after.bias.subspan(std::size_t(group * rows), std::size_t(rows));
  return {.bias = bias, .activation = after.activation};
}

template <class T>
Epilogue<T> HostLayer::State::epilogue(const GradAOptions<T>& after, std::int64_t group) const {
  if (after.where_positive.data == nullptr) return {};
  return {.where_positive = part("where_positive", after.where_positive, &Dims::y, group)};
}

// The self-check compares the product, so what comes after it waits until then.
template <class T>
bool HostLayer::forward(MatrixView<const T> s, MatrixView<T> q, const ForwardOptions& after,
                        const verify::RunOptions& options, HostTimes& times) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const verify::RunOptions& once) {
      return forward<T>(s, q, after, once, times);
    });
  const auto call = state_->caller.enter_pass("forward");
  auto& groups = state_->checked_groups<T>("forward");
  state_->check_columns("s", s.cols, "q", q.cols);
  check_no_overlap("forward", footprint("q", q),
                   std::array{footprint("s", s), footprint("bias", after.bias)});
  const bool checks = options.self_check != nullptr;
  internal::PassControl control(options);
  times = {};
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto in = state_->part("s", s, &Dims::y, g);
    const auto out = state_->part("q", q, &Dims::x, g);
    const Epilogue<T> own = state_->epilogue<T>(after, g);
    if (!groups[std::size_t(g)].forward(in, out, checks ? Epilogue<T>() : own, control, times))
      return false;
  }
  if (!checks) return true;
  state_->check_product<T>(Pass::Fwd, s, q, *options.self_check);
  for (std::int64_t g = 0; g < std::ssize(groups); ++g)
    apply_to_all(state_->epilogue<T>(after, g), state_->part("q", q, &Dims::x, g));
  return true;
}

template <class T>
bool HostLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                       const GradAOptions<T>& after, const verify::RunOptions& options,
                       HostTimes& times) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const verify::RunOptions& once) {
      return grad_a<T>(q_grad, s_grad, after, once, times);
    });
  const auto call = state_->caller.enter_pass("grad_a");
  auto& groups = state_->checked_groups<T>("grad_a", state_->problem.grad_a);
  state_->check_columns("q_grad", q_grad.cols, "s_grad", s_grad.cols);
  if (after.where_positive.data != nullptr)
    state_->check_columns("where_positive", after.where_positive.cols, "s_grad", s_grad.cols);
  check_no_overlap(
      "grad_a", footprint("s_grad", s_grad),
      std::array{footprint("q_grad", q_grad), footprint("where_positive", after.where_positive)});
  const bool checks = options.self_check != nullptr;
  internal::PassControl control(options);
  times = {};
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const auto in = state_->part("q_grad", q_grad, &Dims::x, g);
    const auto out = state_->part("s_grad", s_grad, &Dims::y, g);
    const Epilogue<T> own = state_->epilogue<T>(after, g);
    if (!groups[std::size_t(g)].grad_a(in, out, checks ? Epilogue<T>() : own, control, times))
      return false;
  }
  if (!checks) return true;
  state_->check_product<T>(Pass::GradA, q_grad, s_grad, *options.self_check);
  for (std::int64_t g = 0; g < std::ssize(groups); ++g)
    apply_to_all(state_->epilogue<T>(after, g), state_->part("s_grad", s_grad, &Dims::y, g));
  return true;
}

template <class T>
bool HostLayer::State::run_grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
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
bool HostLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                       std::span<float> gradients, Accumulate accumulate,
                       const verify::RunOptions& options, HostTimes& times) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const verify::RunOptions& once) {
      return grad_w<T>(q_grad, s, gradients, accumulate, once, times);
    });
  const auto call = state_->caller.enter_pass("grad_w");
  state_->checked_groups<T>("grad_w", state_->problem.grad_w);
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
  if (options.self_check == nullptr)
    return state_->run_grad_w(q_grad, s, gradients, accumulate, control, times);
  // The check compares the gradients of this pass alone. Those of the caller change only after it
  // agrees, so that a repair adds one pass.
  std::vector<float> own(accumulate == Accumulate::Yes ? gradients.size() : 0);
  const std::span<float> result = own.empty() ? gradients : std::span<float>(own);
  if (!state_->run_grad_w(q_grad, s, result, Accumulate::No, control, times)) return false;
  state_->check_gradient<T>(result, q_grad, s, *options.self_check);
  for (std::size_t i = 0; i < own.size(); ++i) gradients[i] += own[i];
  return true;
}

template <class T>
bool HostLayer::forward(MatrixView<const T> s, MatrixView<T> q, const verify::RunOptions& options,
                        HostTimes& times) {
  return forward<T>(s, q, {}, options, times);
}

template <class T>
bool HostLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                       const verify::RunOptions& options, HostTimes& times) {
  return grad_a<T>(q_grad, s_grad, {}, options, times);
}

template <class T>
bool HostLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                       std::span<float> gradients, const verify::RunOptions& options,
                       HostTimes& times) {
  return grad_w<T>(q_grad, s, gradients, Accumulate::No, options, times);
}

template <class T>
HostTimes HostLayer::forward(MatrixView<const T> s, MatrixView<T> q, const ForwardOptions& after) {
  HostTimes times;
  static_cast<void>(forward<T>(s, q, after, {}, times));  // it cannot be stopped
  return times;
}

template <class T>
HostTimes HostLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const GradAOptions<T>& after) {
  HostTimes times;
  static_cast<void>(grad_a<T>(q_grad, s_grad, after, {}, times));
  return times;
}

template <class T>
HostTimes HostLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, Accumulate accumulate) {
  HostTimes times;
  static_cast<void>(grad_w<T>(q_grad, s, gradients, accumulate, {}, times));
  return times;
}

#define TESSERA_PASSES(T)                                                                          \
  template HostTimes HostLayer::forward(MatrixView<const T>, MatrixView<T>,                        \
                                        const ForwardOptions&);                                    \
  template HostTimes HostLayer::grad_a(MatrixView<const T>, MatrixView<T>,                         \
                                       const GradAOptions<T>&);                                    \
  template HostTimes HostLayer::grad_w(MatrixView<const T>, MatrixView<const T>, std::span<float>, \
                                       Accumulate);                                                \
  template bool HostLayer::forward(MatrixView<const T>, MatrixView<T>, const verify::RunOptions&,  \
                                   HostTimes&);                                                    \
  template bool HostLayer::grad_a(MatrixView<const T>, MatrixView<T>, const verify::RunOptions&,   \
                                  HostTimes&);                                                     \
  template bool HostLayer::grad_w(MatrixView<const T>, MatrixView<const T>, std::span<float>,      \
                                  const verify::RunOptions&, HostTimes&);                          \
  template bool HostLayer::forward(MatrixView<const T>, MatrixView<T>, const ForwardOptions&,      \
                                   const verify::RunOptions&, HostTimes&);                         \
  template bool HostLayer::grad_a(MatrixView<const T>, MatrixView<T>, const GradAOptions<T>&,      \
                                  const verify::RunOptions&, HostTimes&);                          \
  template bool HostLayer::grad_w(MatrixView<const T>, MatrixView<const T>, std::span<float>,      \
                                  Accumulate, const verify::RunOptions&, HostTimes&);
TESSERA_PASSES(float)
TESSERA_PASSES(Half)
TESSERA_PASSES(BFloat16)
#undef TESSERA_PASSES

}  // namespace tessera::host
