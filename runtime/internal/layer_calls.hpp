#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/layer/backend.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime::internal {

// A layer on a modelled machine, whose calls were checked. The state of such a layer has
//   problem                       Problem
//   gradients_by_group            scratch for GradW
//   product<T>(pass, in, out, options, ledger)
//   gradient<T>(q_grad, s, gradients, options, ledger), which writes a matrix for each group
template <class State>
bool run_on_tiles(State& state, Pass pass, const layer::Operands& operands,
                  const PassOptions& options, device::Ledger& ledger) {
  return with_type(state.problem.data_type, [&]<class T>(T) {
    if (pass != Pass::GradW)
      return state.template product<T>(pass, operands.in.as<T>(), operands.out.as<T>(), options,
                                       ledger);
    std::vector<sparse::Csr<float>>& by_group = state.gradients_by_group;
    by_group.resize(std::size_t(state.problem.size.g));
    const auto run = [&] {
      return state.template gradient<T>(operands.in.as<T>(), operands.in_s.as<T>(),
                                        std::span(by_group), options, ledger);
    };
    return with_results(options, run, [&] {
      auto to = operands.gradients.begin();
      for (const sparse::Csr<float>& of_group : by_group)
        to = std::copy(of_group.values.begin(), of_group.values.end(), to);
    });
  });
}

// Returns the cost of a call that nothing can stop.
template <class Run>
device::Ledger ledger_of(Run&& run) {
  device::Ledger ledger;
  static_cast<void>(run(ledger));
  return ledger;
}

}  // namespace tessera::runtime::internal
