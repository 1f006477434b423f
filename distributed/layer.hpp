#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/row_cut.hpp"
#include "tessera/host/change_part.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/host/times.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/run_options.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::distributed {

// Options of a layer. Results have the same bits with any of them.
struct LayerOptions {
  // The rows of Q and of S that each rank has. Without a value R is cut into runs of rows, and of
  // columns, with about as many non-zeros. A network gives the outputs of one layer to the next one
  // as inputs, so that results lie as the next operands.
  std::optional<RowCut> outputs, inputs;

  // True: operands are gathered in panels of columns, the next one while one is multiplied. False:
  // they are gathered as a whole before the product, which is there to be compared with.
  bool panels = true;
};

// Measured times and traffic of a pass of one rank.
struct PassTimes {
  host::HostTimes host;             // of this rank's products; `seconds` is of the whole pass
  double gather_seconds = 0;        // in waits for rows of other ranks
  std::int64_t received_bytes = 0;  // rows of other ranks
};

// A sparse fully connected layer whose rows are spread over ranks. It has the calls of
// host::HostLayer (host/layer.hpp), each on the rows of the calling rank: for the run `outputs` of
// rows of R and the run `inputs` of columns
//
//   forward  Q[outputs][z]      gathers S
//   grad_a   dS[inputs][z]      gathers dQ; the rank also holds the columns `inputs` of R for it
//   grad_w   dR[outputs]        gathers S
//
// No sum crosses ranks, so results have the bits of a HostLayer of the whole R, for any number of
// ranks and threads, as long as all ranks describe the same caches (host::HostCpu).
//
// Every function that is not const is collective: all ranks call it, in the same order. An
// exception on one rank leaves the others waiting, so the program ends all of them: run_ranks and
// run_mpi_rank do. Throws Error{InvalidArgument} for operands of another shape or type and for
// calls before the first weights, and the errors of the communicator. When weights are set, all
// ranks compare what they were given (agreement.hpp). One group, and no dense passes. A layer that
// was moved from may be destroyed and assigned to; all else is refused.
class DistributedLayer {
 public:
  using Cost = PassTimes;

  // Executor and communicator must outlive the layer. Throws Error{InvalidArgument} for a problem
  // that HostLayer refuses, for more than one group and for cuts that are not of this problem.
  DistributedLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                   Communicator& ranks, const LayerOptions& options = {});
  ~DistributedLayer();
  DistributedLayer(DistributedLayer&&) noexcept;
  DistributedLayer& operator=(DistributedLayer&&) noexcept;

  // Takes the whole R, the same on every rank, and keeps this rank's part.
  void set_weights(const sparse::Csr<float>& weights);

  // Takes this rank's rows of R: those of the run `outputs.of(rank)`, in whole blocks, with all
  // columns. No rank needs the whole R then.
  void set_rows(const RowCut& outputs, sparse::Csr<float> rows);

  // Changes the pattern of this rank's rows; places are block rows of weights(). A rank without
  // changes passes an empty change. Only the places travel. Values as HostLayer::update_weights.
  void update_weights(const sparse::PatternChange& change);

  // Set or change the values of this rank's rows, in the order of weights().values, as the
  // functions of HostLayer do. For GradA the values travel to the ranks with their columns.
  void set_values(std::span<const float> values);
  template <class Change>
  void change_values(Change&& change) {
    change_parts(host::ChangePart(change));
  }

  // Writes q, this rank's rows of Q, from s, its rows of S. The bias is of this rank's rows. T is
  // float, Half or BFloat16.
  template <class T>
  PassTimes forward(MatrixView<const T> s, MatrixView<T> q, const host::ForwardOptions& after = {});

  // Writes s_grad, this rank's rows of dS, from q_grad, its rows of dQ.
  template <class T>
  PassTimes grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                   const host::GradAOptions<T>& after = {});

  // Writes the gradients of this rank's values, or adds them.
  template <class T>
  PassTimes grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                   host::Accumulate accumulate = host::Accumulate::No);

  // The same passes with options of the run, which all ranks give alike. They return false on all
  // ranks if options.stop of any rank ended the pass; `times` is overwritten. A step is a panel of
  // columns. With self_check a checksum travels with the rows of every rank and is compared where
  // they arrive, and each rank checks its own results as host::HostLayer does; the outcome is that
  // of this rank. What is wrong is Error{CheckFailed}, which names the rank. With repair a rank
  // computes the panel once more.
  template <class T>
  [[nodiscard]] bool forward(MatrixView<const T> s, MatrixView<T> q,
                             const host::ForwardOptions& after, const verify::RunOptions& options,
                             PassTimes& times);
  template <class T>
  [[nodiscard]] bool grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const host::GradAOptions<T>& after, const verify::RunOptions& options,
                            PassTimes& times);
  template <class T>
  [[nodiscard]] bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, host::Accumulate accumulate,
                            const verify::RunOptions& options, PassTimes& times);

  const Problem& problem() const;

  // Return the cuts of Q and S, after the first weights.
  const RowCut& outputs() const;
  const RowCut& inputs() const;

  // Returns this rank's rows of R, as many block rows as outputs() gives it.
  const sparse::Csr<float>& weights() const;

  // Returns the transpose of this rank's columns of R, which GradA reads: a matrix in transposed
  // blocks, with as many block rows as inputs() gives it. Needs a problem with grad_a.
  const sparse::Csr<float>& columns() const;

  // Returns the rounding that the results of a pass may have, which is that of a HostLayer.
  verify::Rounding rounding(Pass pass) const;

  // Returns the number of values of this rank, and of all ranks.
  std::int64_t values() const;
  std::int64_t all_values() const;

  // Returns the bytes of this rank's part: its rows, its columns for GradA and the order between
  // them, without the panels of a pass.
  std::int64_t memory_bytes() const;

 private:
  void change_parts(const host::ChangePart& change);

  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::distributed
