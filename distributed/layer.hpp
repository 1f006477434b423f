#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/cut.hpp"
#include "tessera/distributed/row_cut.hpp"
#include "tessera/host/change_part.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/host/times.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/run_options.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::distributed {

// Measured times and traffic of a pass of one rank.
struct PassTimes {
  host::HostTimes host;             // of this rank's products; `seconds` is of the whole pass
  double gather_seconds = 0;        // in waits for rows of other ranks
  std::int64_t received_bytes = 0;  // rows of other ranks
};

// The part of a group that a rank has: rows of Q and of S, and the rows and columns of R whose
// values it has, in elements of the group.
struct GroupPart {
  std::int64_t group = 0;
  Range outputs, inputs;
  Range rows, columns;

  friend bool operator==(const GroupPart&, const GroupPart&) = default;
};

// A sparse fully connected layer over ranks. It has the calls of host::HostLayer (host/layer.hpp),
// each on what the calling rank has by the cut of the layer (cut.hpp):
//
//   forward  Q   of the rank's rows from its rows of S
//   grad_a   dS  of the rank's rows from its rows of dQ
//   grad_w   dR  of the rank's values from its rows of dQ and S
//
// The operands of a rank have its rows of each of its groups (parts()), one group below the other,
// and its columns of the batch (batch()). Results have the bits of a HostLayer of the whole layer,
// for any number of ranks and threads, as long as all ranks describe the same caches
// (host::HostCpu); with replicas, and in GradW with leaves, they have bits of their own, which do
// not depend on the number of ranks either.
//
// Every function that is not const is collective: all ranks call it, in the same order; those of a
// group, all ranks that have it. An exception on one rank leaves the others waiting, so the program
// ends all of them: run_ranks and run_mpi_rank do. Throws Error{InvalidArgument} for operands of
// another shape or type, for results that share memory with an operand and for calls before the
// first weights, and the errors of the communicator. When weights are set, all ranks compare what
// they were given (agreement.hpp). No dense passes. A layer that was moved from may be destroyed
// and assigned to; all else is refused.
class RankLayer {
 public:
  using Cost = PassTimes;

  // Executor and communicator must outlive the layer. Throws Error{InvalidArgument} for a problem
  // that HostLayer refuses, and with the text of why_not() for a cut that is not possible.
  RankLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
            Communicator& ranks, const Cut& cut = {});
  ~RankLayer();
  RankLayer(RankLayer&&) noexcept;
  RankLayer& operator=(RankLayer&&) noexcept;

  // Takes the whole matrix of every group, the same on every rank, and keeps this rank's part.
  // Throws what HostLayer::set_weights throws, and Error{InvalidArgument} if there are fewer block
  // columns (or, for GradA, rows) with values than replicas. The layer has its old weights then.
  void set_weights(std::span<const sparse::CheckedCsr<float>> weights);
  void set_weights(const sparse::CheckedCsr<float>& weights);

  // Returns true for a layer of one group without replicas and leaves, whose ranks have whole rows.
  bool can_set_rows() const;

  // Takes this rank's rows of R: those of the run `rows.of(rank)`, in whole blocks, with all
  // columns. No rank needs the whole R then. Throws Error{InvalidArgument} unless can_set_rows().
  void set_rows(const RowCut& rows, sparse::Csr<float> own);

  // Changes the pattern of this rank's part of a group; places are blocks of weights(group). A rank
  // without changes passes an empty change; with leaves all ranks pass the same. Only places
  // travel. Values as HostLayer::update_weights.
  void update_weights(const sparse::PatternChange& change, std::int64_t group = 0);

  // Set or change the values of this rank's part of a group, in the order of weights(group).values,
  // as the functions of HostLayer do; with leaves all ranks pass the same. For GradA the values
  // travel to the ranks that have them in the transpose.
  void set_values(std::span<const float> values, std::int64_t group = 0);
  template <class Change>
  void change_values(Change&& change, std::int64_t group = 0) {
    change_parts(host::ChangePart(change), group);
  }

  // Writes q, this rank's rows of Q, from s, its rows of S. The bias is of this rank's rows. T is
  // float, Half or BFloat16.
  template <class T>
  PassTimes forward(MatrixView<const T> s, MatrixView<T> q,
                    const host::ForwardOptions& after = {}) {
    PassTimes times;
    [[maybe_unused]] const bool finished = forward<T>(s, q, after, {}, times);
    return times;
  }

  // Writes s_grad, this rank's rows of dS, from q_grad, its rows of dQ.
  template <class T>
  PassTimes grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                   const host::GradAOptions<T>& after = {}) {
    PassTimes times;
    [[maybe_unused]] const bool finished = grad_a<T>(q_grad, s_grad, after, {}, times);
    return times;
  }

  // Writes the gradients of this rank's values, group after group, or adds them.
  template <class T>
  PassTimes grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                   host::Accumulate accumulate = host::Accumulate::No) {
    PassTimes times;
    [[maybe_unused]] const bool finished = grad_w<T>(q_grad, s, gradients, accumulate, {}, times);
    return times;
  }

  // The same passes with options of the run, which all ranks give alike. They return false on all
  // ranks if options.stop of any rank ended the pass, between two panels of columns of a cut
  // without groups and replicas, else between two groups; `times` is overwritten. With self_check a
  // checksum travels with the rows of every rank and is compared where they arrive, and each rank
  // checks its own products as host::HostLayer does; the outcome is that of this rank. What is
  // wrong is Error{CheckFailed}, which names the rank. With repair a rank computes the panel once
  // more.
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

  // Returns the cut with its number of replicas. After the first weights it also has the rows and
  // columns of all ranks of a group that this rank has, unless it has leaves.
  Cut cut(std::int64_t group = 0) const;

  // Return what this rank has, after the first weights: its groups, ascending; and its columns of
  // the batch. Operands have any number of columns without leaves.
  std::span<const GroupPart> parts() const;
  Range batch() const;

  // Return this rank's rows of Q and S of one of its groups, in elements of the group.
  Range outputs(std::int64_t group = 0) const;
  Range inputs(std::int64_t group = 0) const;

  // Return the rows of this rank's operands: those of all of its groups together.
  std::int64_t output_rows() const;
  std::int64_t input_rows() const;

  // Returns this rank's values of a group: GroupPart::rows and columns of R, in whole blocks.
  const sparse::Csr<float>& weights(std::int64_t group = 0) const;

  // Returns the part of the transpose of R that GradA of this rank reads, a matrix in transposed
  // blocks: with one replica the rows are inputs(group). Needs a problem with grad_a.
  const sparse::Csr<float>& columns(std::int64_t group = 0) const;

  // Returns the rounding that the results of a pass may have.
  verify::Rounding rounding(Pass pass) const;

  // Return the number of values of this rank, and of its groups on all ranks.
  std::int64_t values() const;
  std::int64_t all_values() const;

  // Returns the bytes of this rank's part: its weights, those of the transpose for GradA and the
  // order between them, without the scratch memory of a pass.
  std::int64_t memory_bytes() const;

 private:
  void change_parts(const host::ChangePart& change, std::int64_t group);

  struct State;
  MovableState<State> state_;
};

}  // namespace tessera::distributed
