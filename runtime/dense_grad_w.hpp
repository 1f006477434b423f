#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/dense_grad_w.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime {

// The places that a search found, and its cost.
struct LargestGradients {
  std::vector<sparse::BlockAt> places;  // row by row
  device::Ledger ledger;                // of all runs; its phase Reduce is the selection
  std::int64_t runs = 0;                // of the program
  Bytes upload, download;               // the stored blocks and requests; the lists of the tiles
};

// The search for the blocks of largest weight gradient on a modelled machine, for a rewire by
// RigL: the program of a planner::DenseGradWPlan. The operands are on the machine already, spread
// evenly. The host sends a bit for each block, which says whether the pattern stores it, and reads
// the lists of all tiles, from which it takes the best. If a list is full of places that are taken,
// the program runs again for what comes after it, so the places are the best of all whatever the
// tiles keep. Operands whose products are whole numbers that floats hold exactly give the places of
// train::largest_gradients; others may differ where two scores are equal but for rounding.
class DenseGradW {
 public:
  // Builds the program. The executor must outlive it. Throws Error{LimitExceeded} if a tile is too
  // small.
  DenseGradW(const planner::DenseGradWPlan& plan, const device::Machine& machine,
             device::ExchangeMode mode, Executor& executor);
  ~DenseGradW();
  DenseGradW(DenseGradW&&) noexcept;

  device::MemoryUse memory() const;
  const Program& program() const;

  // Returns the k blocks of largest gradient that the pattern `taken` does not store, from q_grad
  // [x][z] and s [y][z]; equal ones by lower place. T is the C++ type of the plan's data type.
  // Throws Error{InvalidArgument} for another T, for operands or a pattern of another shape, and
  // for k outside 0..free blocks; Error{BadInput}, which names the place, if the gradient of a free
  // block is not finite. `name` names the weights in messages.
  template <class T>
  LargestGradients largest(const sparse::Csr<float>& taken, std::int64_t k,
                           codelets::BlockScore score, MatrixView<const T> q_grad,
                           MatrixView<const T> s, std::string_view name = "weights") {
    return cost_of_whole<LargestGradients>([&](LargestGradients& found) {
      return largest<T>(taken, k, score, q_grad, s, PassOptions(), found, name);
    });
  }

  // Does the same with options. Returns false if options.stop ended a run; nothing is found then.
  // `found` is overwritten. Steps are counted over all runs. With a self-check the memory of the
  // tiles is watched, and a change that no step made is Error{CheckFailed}, which names it: whether
  // a better place was missed could be checked only by computing the gradient again.
  template <class T>
  [[nodiscard]] bool largest(const sparse::Csr<float>& taken, std::int64_t k,
                             codelets::BlockScore score, MatrixView<const T> q_grad,
                             MatrixView<const T> s, const PassOptions& options,
                             LargestGradients& found, std::string_view name = "weights");

 private:
  struct State;
  MovableState<State> state_;
};

// Plans the search for k blocks of a layer and builds its program. Throws the errors of
// plan_dense_grad_w, and Error{NoSolution} with the reason if no plan fits the machine.
DenseGradW search_for(const Problem& problem, std::int64_t k, const device::Machine& machine,
                      device::ExchangeMode mode, Executor& executor);

}  // namespace tessera::runtime
