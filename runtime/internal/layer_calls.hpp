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
//   product<T>(pass, in, out, options, ledger)
//   gradient<T>(q_grad, s, gradients, options, ledger)
template <class State>
bool run_on_tiles(State& state, Pass pass, const layer::Operands& operands,
                  const PassOptions& options, device::Ledger& ledger) {
  return with_type(state.problem.data_type, [&]<class T>(T) {
    if (pass != Pass::GradW)
      return state.template product<T>(pass, operands.in.as<T>(), operands.out.as<T>(), options,
                                       ledger);
    return state.template gradient<T>(operands.in.as<T>(), operands.in_s.as<T>(),
                                      operands.gradients, options, ledger);
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
