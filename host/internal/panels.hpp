#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/kernel.hpp"

namespace tessera::host::internal {

// A dense operand [rows][z] in panels of columns, as kernels read it: in place, or copied so that
// the rows of a panel are consecutive. Rows beyond the caller's are zero. Copies are kept of all
// panels, or of one only, which is then still in the nearest caches when it is used.
template <class T>
class HostPanels {
 public:
  enum class Kept { All, One };

  explicit HostPanels(Kept kept) : kept_(kept) {}

  // Sets the number of rows that kernels may read, which must be at least that of the operands, the
  // number of columns, and the columns of a panel. The storage of copies is kept.
  void set_shape(std::int64_t rows, std::int64_t z, std::int64_t width) {
    rows_ = rows;
    z_ = z;
    width_ = width;
  }

  std::int64_t count() const { return ceil_div(z_, width_); }
  Range columns(std::int64_t panel) const {
    return {panel * width_, std::min((panel + 1) * width_, z_)};
  }

  // Takes an operand. Its panels will be copied if `copy` is true or if kernels cannot read it in
  // place. Allocates in the first call, and after a change of shape.
  void begin(MatrixView<const T> from, bool copy) {
    from_ = from;
    copied_ = copy || !from.rows_are_contiguous() || from.rows < rows_;
    if (copied_) copy_.resize(std::size_t(rows_ * width_ * (kept_ == Kept::All ? count() : 1)));
  }

  // Copies these panels if they have to be copied. Must be called before panel() of them.
  void read(Range panels, Executor& executor) {
    if (!copied_) return;
    const std::int64_t chunks = ceil_div(rows_, kChunk);
    executor.for_each(chunks * panels.size(), [&](std::int64_t i) {
      const std::int64_t first = i % chunks * kChunk;
      copy_rows(panels.begin + i / chunks, {first, std::min(first + kChunk, rows_)});
    });
  }

  // Returns rows [rows.begin, rows.end) of a panel.
  codelets::Operand panel(std::int64_t panel, Range rows) const {
    const Range cols = columns(panel);
    if (!copied_)
      return {from_.row(rows.begin) + cols.begin, rows.size(), cols.size(), from_.row_stride};
    return {copy_.data() + copied_row(panel, rows.begin), rows.size(), cols.size(), width_};
  }

 private:
  static constexpr std::int64_t kChunk = 64;  // rows

  std::size_t copied_row(std::int64_t panel, std::int64_t row) const {
    return std::size_t(((kept_ == Kept::All ? panel : 0) * rows_ + row) * width_);
  }
  void copy_rows(std::int64_t panel, Range rows) {
    const Range cols = columns(panel);
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      T* to = copy_.data() + copied_row(panel, r);
      if (r >= from_.rows)
        std::fill_n(to, cols.size(), T());
      else if (from_.rows_are_contiguous())
        std::memcpy(to, from_.row(r) + cols.begin, std::size_t(cols.size()) * sizeof(T));
      else
        for (std::int64_t c = 0; c < cols.size(); ++c) to[c] = from_(r, cols.begin + c);
    }
  }

  std::int64_t rows_ = 0, z_ = 1, width_ = 1;
  Kept kept_;
  MatrixView<const T> from_;
  bool copied_ = false;
  AlignedVector<T> copy_;
};

}  // namespace tessera::host::internal
