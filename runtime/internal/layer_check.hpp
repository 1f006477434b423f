#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::runtime::internal {

// The facts that the check of a pass needs besides its operands and results.
struct CheckFacts {
  verify::Rounding rounding;
  verify::MemoryDamage damage;
};

// Returns the damage of programs that ran one after the other for a pass.
verify::MemoryDamage memory_damage(std::initializer_list<device::Damage> programs);

// Returns the bytes of every tile that the buckets of all layouts of a plan take; a dense plan has
// none.
Bytes resident_bytes(const planner::Plan& plan, DataType type, const device::Machine& machine);

// Calls run(), which runs a pass with `options` and returns whether it finished, and hand_over() if
// there are results: after a finished pass, and before an exception of results that failed their
// check reaches the caller.
template <class Run, class HandOver>
bool with_results(const PassOptions& options, Run&& run, HandOver&& hand_over) {
  try {
    if (!run()) return false;
  } catch (const Error& error) {
    const bool has_results = options.self_check != nullptr && options.self_check->compared > 0;
    if (error.code() == ErrorCode::CheckFailed && has_results) hand_over();
    throw;
  }
  hand_over();
  return true;
}

// The weights of all groups, and what a check needs of their layer.
struct CheckedWeights {
  std::vector<const sparse::CheckedCsr<float>*> groups;
  verify::KeptSums& sums;  // of `groups`
  Executor& executor;
};

// Runs verify::check_product on every group of a layer and collects the checksums of all groups in
// `all`. Operands and results of all groups are stored one below the other. GradA multiplies by the
// transpose. Throws Error{CheckFailed} with pass, group and place if a result is wrong.
template <class T>
void check_layer_product(Pass pass, const CheckedWeights& weights, MatrixView<const T> in,
                         MatrixView<const T> out, const CheckFacts& facts, verify::Checksums& all);

// Does the same with verify::check_gradient. The memory of the pass was watched, so sums of a
// sample of rows are compared.
template <class T>
void check_layer_gradient(const CheckedWeights& weights, std::span<const float> gradients,
                          MatrixView<const T> q_grad, MatrixView<const T> s,
                          const CheckFacts& facts, verify::Checksums& all);

}  // namespace tessera::runtime::internal
