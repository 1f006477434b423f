#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/internal/run_product.hpp"
#include "tessera/distributed/tree_sum.hpp"
#include "tessera/host/change_part.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/run_options.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::distributed::internal {

// The part that a rank has of a layer whose batch is split: all weights of all groups, and the
// columns of some leaves (Cut::leaves). Operands have been checked; only grad_w is collective.
class BatchPart {
 public:
  BatchPart(const RankSetting& setting, Communicator& ranks, const Problem& problem,
            std::int64_t leaves, std::span<const sparse::Csr<float>> weights);

  // Returns this rank's columns of the batch.
  Range columns() const;

  // The passes of RankLayer (layer.hpp). They return false if a stop ended them.
  template <class T>
  bool forward(MatrixView<const T> s, MatrixView<T> q, const host::ForwardOptions& after,
               const verify::RunOptions& options, host::HostTimes& times) {
    return local_.forward<T>(s, q, after, options, times);
  }
  template <class T>
  bool grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad, const verify::RunOptions& options,
              host::HostTimes& times) {
    return local_.grad_a<T>(q_grad, s_grad, host::GradAOptions<T>(), options, times);
  }
  template <class T>
  bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
              const verify::RunOptions& options, host::HostTimes& times);

  void update_weights(const sparse::PatternChange& change, std::int64_t group) {
    local_.update_weights(change, group);
  }
  void set_values(std::span<const float> values, std::int64_t group) {
    local_.set_values(values, group);
  }
  void change_values(const host::ChangePart& change, std::int64_t group) {
    local_.change_values(change, group);
  }

  const sparse::Csr<float>& weights(std::int64_t group) const { return local_.weights(group); }
  std::int64_t values() const { return local_.values(); }
  std::int64_t all_values() const { return values(); }
  verify::Rounding rounding(Pass pass) const;
  std::int64_t memory_bytes() const { return local_.memory_bytes(); }

 private:
  Range leaf_columns(std::int64_t leaf) const;

  Communicator& ranks_;
  std::int64_t batch_, leaves_;
  Range own_;  // leaves
  host::HostLayer local_;
  std::vector<float> leaf_;  // gradients of one leaf
};

}  // namespace tessera::distributed::internal
