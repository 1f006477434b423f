#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/cut.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/times.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/sparse/formats.hpp"

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

// A layer (layer/layer.hpp) over ranks, each of which runs it on what it has by the cut (cut.hpp):
//
//   forward  Q   of the rank's rows from its rows of S
//   grad_a   dS  of the rank's rows from its rows of dQ
//   grad_w   dR  of the rank's values from its rows of dQ and S
//
// The operands of a rank have its rows of each of its groups (parts()), one group below the other,
// and its columns of the batch (columns_of_batch()); facts() has the numbers of rows. Without
// leaves a call may have any number of columns. Results have the bits of a HostLayer of the whole
// layer that reads no rows (host::HostOptions), for any number of ranks and threads, as long as
// all ranks describe the same caches (host::HostCpu); with replicas, and in GradW with leaves, they
// have bits of their own, which do not depend on the number of ranks either.
//
// set_weights takes the whole matrix of every group, the same on every rank, and keeps this rank's
// part: weights(group) has GroupPart::rows and columns of R, in whole blocks. Changes of the
// pattern and of values are of this part, places in its blocks; a rank without changes passes an
// empty one, and with leaves all ranks pass the same. For GradA places and values travel to the
// ranks that have them in the transpose. set_weights throws Error{InvalidArgument} if there are
// fewer block columns (or, for GradA, rows) with values than replicas.
//
// Every function that is not const is collective: all ranks call it, in the same order, with the
// same options; those of a group, all ranks that have it. An exception on one rank leaves the
// others waiting, so the program ends all of them: run_ranks and run_mpi_rank do. When weights are
// set, all ranks compare what they were given (agreement.hpp). There are no
// dense passes and none that read rows: whether they are faster depends on the size of a rank's
// part.
//
// The cost of a pass is the measured time and traffic of this rank. A stop that any rank asks for
// ends the pass on all of them, between two panels of columns of a cut without groups and replicas,
// else between two groups. With self_check a checksum travels with the rows of every rank and is
// compared where they arrive, and each rank checks its own products as host::HostLayer does; the
// outcome is that of this rank. What is wrong is Error{CheckFailed}, which names the rank. With
// repair a rank computes the panel once more.
class RankLayer : public layer::LayerOf<PassTimes> {
 public:
  // Executor and communicator must outlive the layer. Throws Error{InvalidArgument} for a problem
  // that is not legal, and with the text of why_not() for a cut that is not possible.
  RankLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
            Communicator& ranks, const Cut& cut = {});

  // Takes this rank's rows of R: those of the run `rows.of(rank)`, in whole blocks, with all
  // columns. No rank needs the whole R then. Throws Error{InvalidArgument} for a layer of several
  // groups or with replicas or leaves.
  void set_rows(const RowCut& rows, sparse::Csr<float> own);

  // Returns the cut with its number of replicas.
  const Cut& cut() const;

  // Return what this rank has, after the first weights: its groups, ascending; and its columns of
  // the batch. Operands have any number of columns without leaves.
  std::span<const GroupPart> parts() const;
  Range columns_of_batch() const;

  // Return the rows of Q and of S, in elements of a group, that this rank has of it after the first
  // weights. Throw Error{InvalidArgument} if it has nothing of the group.
  Range outputs(std::int64_t group = 0) const { return part(group).outputs; }
  Range inputs(std::int64_t group = 0) const { return part(group).inputs; }

  // Returns the part of the transpose of R that GradA of this rank reads, a matrix in transposed
  // blocks: with one replica the rows are the inputs of the group. Needs a problem with grad_a.
  const sparse::Csr<float>& columns(std::int64_t group = 0) const;

 private:
  struct State;
  State& state() const;
  GroupPart part(std::int64_t group) const;
};

}  // namespace tessera::distributed
