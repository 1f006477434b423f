#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/run_options.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/repair.hpp"

// The passes of a layer, checked and repaired as every layer on a modelled machine does it. The
// state of such a layer has
//   caller                        OneCaller
//   problem                       Problem
//   gradients_by_group            scratch for grad_w
//   values()                      number of values of all groups
//   check_call<T>(pass, name)     throws Error{InvalidArgument} for another type than that of the
//                                 layer and for a pass that cannot run
//   product<T>(pass, in, out, options, ledger)
//   gradient<T>(q_grad, s, gradients, options, ledger)
namespace tessera::runtime::internal {

// Runs Fwd or GradA.
template <class T, class State>
bool call_product(State& state, Pass pass, MatrixView<const T> in, MatrixView<T> out,
                  const RunOptions& options, device::Ledger& ledger) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const RunOptions& once) {
      return call_product<T>(state, pass, in, out, once, ledger);
    });
  const bool forward = pass == Pass::Fwd;
  const char* const name = forward ? "forward" : "grad_a";
  const auto call = state.caller.enter(name);
  state.template check_call<T>(pass, name);
  check_no_overlap(name, footprint(forward ? "q" : "s_grad", out),
                   std::array{footprint(forward ? "s" : "q_grad", in)});
  return state.template product<T>(pass, in, out, options, ledger);
}

// Runs GradW and returns a matrix for each group.
template <class T, class State>
bool call_gradient(State& state, MatrixView<const T> q_grad, MatrixView<const T> s,
                   std::span<sparse::Csr<float>> gradients, const RunOptions& options,
                   device::Ledger& ledger) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const RunOptions& once) {
      return call_gradient<T>(state, q_grad, s, gradients, once, ledger);
    });
  const auto call = state.caller.enter("grad_w");
  state.template check_call<T>(Pass::GradW, "grad_w");
  for (const sparse::Csr<float>& gradient : gradients)
    check_no_overlap("grad_w", footprint("gradients", std::span(gradient.values)),
                     std::array{footprint("q_grad", q_grad), footprint("s", s)});
  return state.template gradient<T>(q_grad, s, gradients, options, ledger);
}

// Runs GradW and writes the gradients of all groups one after the other.
template <class T, class State>
bool call_gradient(State& state, MatrixView<const T> q_grad, MatrixView<const T> s,
                   std::span<float> gradients, const RunOptions& options, device::Ledger& ledger) {
  if (options.repair)
    return verify::run_and_repair(options, [&](const RunOptions& once) {
      return call_gradient<T>(state, q_grad, s, gradients, once, ledger);
    });
  const auto call = state.caller.enter("grad_w");
  state.template check_call<T>(Pass::GradW, "grad_w");
  if (std::ssize(gradients) != state.values())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("grad_w: there is space for {} gradients; this layer has {} values",
                            gradients.size(), state.values()));
  check_no_overlap("grad_w", footprint("gradients", gradients),
                   std::array{footprint("q_grad", q_grad), footprint("s", s)});
  std::vector<sparse::Csr<float>>& by_group = state.gradients_by_group;
  by_group.resize(std::size_t(state.problem.size.g));
  return with_results(
      options,
      [&] { return state.template gradient<T>(q_grad, s, std::span(by_group), options, ledger); },
      [&] {
        auto to = gradients.begin();
        for (const sparse::Csr<float>& of_group : by_group)
          to = std::copy(of_group.values.begin(), of_group.values.end(), to);
      });
}

// Returns the cost of a pass that nothing can stop.
template <class Run>
device::Ledger ledger_of(Run&& run) {
  device::Ledger ledger;
  static_cast<void>(run(ledger));
  return ledger;
}

}  // namespace tessera::runtime::internal
