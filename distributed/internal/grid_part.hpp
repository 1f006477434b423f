#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/internal/grid.hpp"
#include "tessera/distributed/internal/route.hpp"
#include "tessera/distributed/internal/run_product.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/layer/change_part.hpp"
#include "tessera/layer/pass_options.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::distributed::internal {

// The part that a rank has of the weights of one group: a run of the rows of a part of the columns
// of R, and with GradA the same of its transpose. Operands have been checked. All functions but
// those that are const are collective over the ranks of the group.
class GridPart {
 public:
  // `problem` is that of all groups, which the ranks [of_group.begin, of_group.end) of `all` have;
  // `own` are the rank's values, in whole blocks.
  GridPart(const RankSetting& setting, Communicator& all, const Problem& problem,
           std::int64_t group, Range of_group, Grid grid, sparse::Csr<float> own);

  // Return the products with R, of Fwd and GradW, and with its transpose, of GradA.
  RunProduct& rows() { return fwd_; }
  RunProduct& columns() { return *transposed_; }

  // A change of the group's pattern that was prepared. No communication is left, and commit()
  // allocates nothing.
  struct Prepared {
    RunProduct::Prepared rows, transposed;
  };
  Prepared prepare(const sparse::PatternChange& change);
  void commit(Prepared& prepared);
  void set_values(std::span<const float> values);
  void change_values(const layer::ChangePart& change);

  GroupPart part() const {
    const int rank = ranks_.rank();
    return {group_, grid_.outputs(rank), grid_.inputs(rank), place().rows, place().columns};
  }
  const Place& place() const { return fwd_.place(); }
  const sparse::Csr<float>& weights() const { return fwd_.weights(); }
  std::int64_t values() const { return std::ssize(fwd_.weights().values); }
  verify::Rounding rounding(Pass pass) const;

 private:
  void send_values();

  std::int64_t group_;
  SubRanks ranks_;
  Grid grid_;
  RunProduct fwd_;
  std::optional<TransposeRoute> route_;  // these two with GradA
  std::optional<RunProduct> transposed_;
};

}  // namespace tessera::distributed::internal
