#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/row_cut.hpp"
#include "tessera/distributed/sub_ranks.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed::internal {

// The place of a rank among runs of rows and parts of columns.
struct GridPlace {
  int run = 0, part = 0;
  std::vector<int> of_part, of_run;  // the ranks with this part, by run; with this run, by part
};

// Q = M S of a matrix of which each rank has a run of the rows of a part of the columns
// (replicated_layer.hpp).
class PartProduct {
 public:
  PartProduct(const host::HostCpu& cpu, Executor& executor, Communicator& ranks, GridPlace place);

  // Takes the whole matrix of the problem. `rows` and `cols` cut its rows and columns into a piece
  // for each rank: runs and parts are neighbouring pieces. Throws Error{InvalidArgument} for a part
  // without columns.
  void set_weights(const Problem& problem, const sparse::Csr<float>& matrix, const RowCut& rows,
                   const RowCut& cols);

  // Writes this rank's rows of Q, from its rows of S.
  void product(MatrixView<const float> s, MatrixView<float> q);

  // Returns the rows of the whole run, from this rank's rows of an operand with the shape of Q.
  MatrixView<const float> gather_run(MatrixView<const float> own);

  DistributedLayer& layer() { return *layer_; }
  const DistributedLayer& layer() const { return *layer_; }

  // The rows and columns of the matrix that this rank has; its rows of Q and of S.
  Range rows() const { return rows_; }
  Range columns() const { return columns_; }
  Range outputs() const;
  Range inputs() const;

 private:
  const host::HostCpu cpu_;
  Executor& executor_;
  int run_, part_;
  SubRanks of_part_, of_run_;
  std::optional<DistributedLayer> layer_;  // of this part
  Range rows_, columns_;
  RowCut pieces_;           // of the rows of this run, for its ranks
  Matrix<float> run_rows_;  // partial sums, or rows of dQ
  std::vector<float> received_;
};

}  // namespace tessera::distributed::internal
