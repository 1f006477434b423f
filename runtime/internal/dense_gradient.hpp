#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/runtime/internal/dense_pass.hpp"
#include "tessera/runtime/internal/own_pass.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime::internal {

// The dense weight gradient of a layer, FullyConnected::dense_grad_w: the GradW of dense layers of
// fewer output features, one after the other.
class DenseGradient {
 public:
  // Plans for the fewest splits of x whose program fits `machine`, the memory of whose tiles is
  // what the buckets leave. Throws Error{NoSolution} if one row at a time does not fit.
  DenseGradient(const Problem& problem, const device::Machine& machine, device::ExchangeMode mode,
                Executor& executor);

  // The operands have been checked.
  template <class T>
  bool run(MatrixView<const T> q_grad, MatrixView<const T> s, MatrixView<T> gradient,
           const PassOptions& options, device::Ledger& ledger);

  std::int64_t splits() const;

 private:
  template <class T>
  device::ByteRows left_of(MatrixView<const T> q_grad, Range rows);
  template <class T>
  void check(MatrixView<const T> q_grad, MatrixView<const T> s, MatrixView<const T> gradient,
             const device::Damage& damage, const PassOptions& options) const;

  Problem problem_;
  std::int64_t rows_ = 1;  // of a split
  std::optional<planner::DensePlan> plan_;
  std::optional<OwnPass<DensePass>> pass_;
  std::vector<std::byte> left_, right_, out_;  // operands and results of a split
};

}  // namespace tessera::runtime::internal
