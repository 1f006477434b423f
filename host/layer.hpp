#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/host/times.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::host {

// The passes that multiply R with its zeros.
enum class DenseChoice {
  Never,
  Always,
  Auto  // each pass whose forecast (cost.hpp) is faster with the zeros
};

// Options of a layer on this computer. The results are right with any of them.
struct HostOptions {
  DenseChoice dense = DenseChoice::Never;
  bool reads_rows = true;          // False: Fwd reads cells where rows are faster, too
  bool own_dense_kernel = false;   // True: used even if a library was built in, to compare them
  std::optional<HostRates> rates;  // for Auto; default_host_rates() if it is empty

  // For some rows of a larger layer: the average blocks of its rows (HostProblem). GradA, whose
  // sums go over all rows, is not cut by it.
  std::optional<double> blocks_in_row;
};

// A layer (layer/layer.hpp) that runs on this computer. It uses the buckets, words and kernels of
// the modelled machines, with cells that suit the caches (cells.hpp). Fwd of floats reads the rows
// of the matrix itself for one column of blocks of 4, 8 or a multiple of 16 columns, for one column
// of elements in a layer that is planned for more, and for samples (both operands with the batch
// first) of a layer of elements whose inputs are at least four for each element and sixteen for
// each output. A self-check of these finds damage to that matrix only if its sums were kept from
// before.
//
// Strides of operands may be any number; rows of contiguous elements are read where they are, and
// an operand with the batch first (the view of a transposed matrix) is transposed in squares as it
// is copied into a panel. Sums are float.
//
// The problem's z is the batch that cells and panels are cut for. A call may have any number of
// columns z, the same for its operands: fewer columns take the time of a layer planned for as many,
// and more run in panels of the planned width. With no columns nothing is computed, and gradients
// are 0. A column's results do not depend on the other columns, but their last bits may differ
// between calls of one column and of several and, where samples are read as they are stored,
// between both orders of operands; gradients are summed panel by panel.
//
// Results have the same bits for any number of threads, but Auto may make another choice for
// another number. Passes allocate only if no call since set_weights and update_weights had as many
// columns, operands of the same strides and alignment and the same options; a self-check and a
// dense library may allocate in every call. A child of fork() may use the layer, unless another
// thread was changing it at the time of fork(): calls are then refused.
//
// set_weights encodes the matrices once for each pass of the product of the problem: GradA is Fwd
// of the transpose. GradW reads the layer's copy. It encodes beside the old weights, so memory has
// to hold both for the time of the call. update_weights writes only the cells in which blocks
// change, and new block numbers into the others; the layer is then as after set_weights, bit for
// bit, and DenseChoice::Auto decides again. It encodes the group again, beside the old weights, if
// elements change in most rows, which is then cheaper, if a pass is dense, if another density asks
// for other cells, or if a cell would outgrow its capacity; and all groups if the decision changes.
//
// The cost of a pass is its measured seconds. A step of PassOptions is a panel of columns, the copy
// of GradW's operands or its products, or a dense product, of one group. With self_check the
// results are compared with the copy of the weights, which GradA transposes in each call; bias,
// activation, derivative and sum are then applied after the comparison, with the same bits.
//
// Example: layer.set_weights(weights); layer.forward<float>(s.view(), q.view()).
class HostLayer : public layer::LayerOf<HostTimes> {
 private:
  template <class T>
  friend class Prepared;

 public:
  // Throws Error{InvalidArgument} for a problem that is not legal or whose sums are not float. The
  // executor must outlive the layer.
  HostLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
            const HostOptions& options = {});

  // Returns the k blocks of a group whose weight gradient dQ * transpose(S) is largest among those
  // that its pattern does not store, from q_grad [g * x][z] and s [g * y][z] of all groups; of
  // equal ones the lower place (largest_gradients.hpp, which has the errors). The gradient is
  // computed in panels and never kept. The problem need not have grad_w. Operands of 16 bits are
  // widened first.
  template <class T>
  std::vector<sparse::BlockAt> largest_gradients(
      std::int64_t k, MatrixView<const T> q_grad, MatrixView<const T> s,
      codelets::BlockScore score = codelets::BlockScore::Sum, std::int64_t group = 0);

  // Returns the bytes of the weights of all groups: the matrices as they were given and the form
  // that each pass reads, with its padding. Scratch memory of passes is not counted. 0 before
  // set_weights. O(groups).
  std::int64_t memory_bytes() const;

  // Returns the cells of a group that Fwd reads; The capacity is that of the
  // fullest cell and a little more. Throws Error{InvalidArgument} if Fwd is dense or packed.
  const partitioner::Buckets& buckets(std::int64_t group = 0) const;

  // Returns the cut of a pass of the first group, after set_weights. GradA's x is the layer's y.
  HostCells cells(Pass pass) const;

  // Returns true if the pass multiplies R with its zeros, after set_weights. All groups do the
  // same.
  bool is_dense(Pass pass) const;

  // Returns true if the pass reads packed rows (codelets/packed_rows.hpp), after set_weights: Fwd
  // of a layer without GradW, of elements in 16 bits that are more than the second-level caches
  // hold, with at most kMostPackedBatch planned columns (cost.hpp), where the forecast is faster
  // than with cells. A call with more columns reads the weights once for each sixteen.
  bool is_packed(Pass pass) const;

  // Returns the predicted time of one pass over all groups, by the options' rates and for the
  // representation that set_weights chose.
  HostForecast forecast(Pass pass) const;

 private:
  struct State;
  State& state() const;
};

}  // namespace tessera::host
