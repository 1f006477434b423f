#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/base/dims.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/row_cut.hpp"

namespace tessera::distributed {

// The cut of a layer over P ranks. Without any other value than the defaults, R is cut into runs of
// rows: every rank has one run of the rows of Q and of R, and one run of the rows of S.
//
// The groups of a layer (Problem::size.g) are dealt to the ranks first. With g groups
//
//   g a multiple of P   a rank has whole groups, and receives nothing
//   P a multiple of g   a group has P / g ranks
//   else                every group is spread over all ranks
//
// and each group is then cut over its ranks as the fields say.
struct Cut {
  // The rows of Q and of S that each rank of a group has. Without a value R is cut into runs of
  // rows, and of columns, with about as many non-zeros. A network gives the outputs of one layer to
  // the next one as inputs, so that results are where the next operands are expected.
  std::optional<RowCut> rows = {}, cols = {};

  // The number of parts of the columns of R, a divisor of the number of ranks of a group; 0 is
  // cheapest_replicas. With 1, no sum crosses ranks. With c > 1 (in the literature: 1.5D) the rows
  // are cut into P / c runs, a rank has one run of one part, and the c ranks of a run add up their
  // partial sums in the order of the parts: many ranks move fewer bytes. Bits depend on c, but not
  // on the number of ranks. In float only.
  int replicas = 1;

  // The number of leaves of the batch; 0: the batch is not cut. With leaves every rank has all
  // weights and the columns of some leaves. Gradients of weights are computed leaf by leaf and
  // added up in one tree (tree_sum.hpp), so their bits depend on the number of leaves, and not on
  // the number of ranks. The batch must be even, because kernels have other last bits for a single
  // column.
  std::int64_t leaves = 0;

  // True: operands are gathered in panels of columns, the next one while one is multiplied. False:
  // they are gathered as a whole before the product, which is there to be compared with.
  bool panels = true;

  friend bool operator==(const Cut&, const Cut&) = default;
};

// The number of leaves to give a Cut without a reason for another one.
constexpr std::int64_t kLeaves = 16;

// Returns the cut as text, for example "2 replicas of runs of rows".
std::string to_string(const Cut& cut);

// Returns why a layer of this problem cannot be cut so over `ranks` ranks, and what to do instead,
// or an empty text if it can. O(ranks).
std::string why_not(const Cut& cut, const Problem& problem, int ranks);

// Returns the columns of a leaf of a batch. Leaves are pairs of columns, so that no panel of any
// rank ends with a single column.
Range leaf_columns(const Cut& cut, std::int64_t batch, std::int64_t leaf);

// Returns the ranks [begin, end) that have a group of a layer of `groups` groups.
Range ranks_of_group(std::int64_t group, std::int64_t groups, int ranks);

// Returns the values that a rank of a group receives in a pass, on average: with P ranks and c
// replicas y z / c (1 - c / P) of S and x z c / P (1 - 1 / c) of partial sums in Fwd; the same of
// dQ instead of the sums in GradW; and in GradA the same with x and y exchanged, and y z / P more
// if c > 1, unless c * c is P. `replicas` divides `ranks`.
double received_values(const Dims& size, int ranks, int replicas, Pass pass = Pass::Fwd);

// Returns the number of replicas, a divisor of `ranks`, with the fewest received_values in all
// passes of the problem; among equal ones the fewest replicas. It depends on the number of ranks,
// and so do bits if it is used: give a number of your own to keep them.
int cheapest_replicas(const Problem& problem, int ranks);

}  // namespace tessera::distributed
