#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/cut.hpp"

namespace tessera::distributed::internal {

// Returns the columns of each panel in which `z` columns are gathered. `width` is the width of the
// panels of the pass on one rank; a last panel of one column there is one here, because kernels
// have other last bits for one column. Panels are at most `most` wide, and no other one has a
// single column.
std::vector<Range> panel_ranges(std::int64_t z, std::int64_t width, std::int64_t most);

// An operand of which every rank has a run of rows, gathered panel by panel: while a panel is read,
// the next one is on its way. A rank copies its own rows into the panel and sends them from there;
// those of other ranks are received in their places, so a panel is a matrix of all rows without any
// more copies.
template <class T>
class GatheredPanels {
 public:
  // Begins a pass over the panels; `own` are the rows of this rank, row_stride is that of panels.
  // `what` is the text of the transfers, which have checksums if `is_checked`. Allocates if no pass
  // has had as large panels.
  GatheredPanels(Communicator& ranks, Executor& executor, const RowCut& cut,
                 std::array<AlignedVector<T>, 2>& memory, std::string_view what,
                 MatrixView<const T> own, std::vector<Range> panels, std::int64_t row_stride,
                 bool is_checked);

  std::int64_t count() const { return std::int64_t(panels_.size()); }
  Range columns(std::int64_t panel) const { return panels_[std::size_t(panel)]; }

  // Returns all rows of a panel, valid until the next call. Panels are taken in ascending order.
  // Starts the next one.
  MatrixView<const T> next();

  // Waits until this rank's memory is free. A pass ends with it.
  void end();

 private:
  // A narrow last panel has no gaps, which would travel.
  std::int64_t row_stride(std::int64_t panel) const {
    const std::int64_t width = columns(panel).size();
    return width == columns(0).size() ? stride_ : width;
  }
  void start(std::int64_t panel);
  void copy_own(std::int64_t panel, T* to) const;
  std::span<T> rows_of(std::int64_t panel, int rank) const;

  Communicator& ranks_;
  Executor& executor_;
  const RowCut& cut_;
  std::array<AlignedVector<T>, 2>& memory_;
  std::string_view what_;
  MatrixView<const T> own_;
  std::vector<Range> panels_;
  std::int64_t stride_, next_ = 0;
  bool is_checked_;
  std::array<Transfer, 2> transfers_;
};

}  // namespace tessera::distributed::internal
