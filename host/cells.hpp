#pragma once

#include <cstdint>
#include <optional>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/codelets/packed_rows.hpp"
#include "tessera/host/cpu.hpp"

namespace tessera::host {

// The cut of one product on the host: cells of R with their slice of the dense operands, as large
// as the data that a cell reads repeatedly may be to stay in a cache. Sizes in elements.
struct HostCells {
  std::int64_t x = 1, y = 1;  // rows and columns of R in a cell, whole blocks
  std::int64_t z = 1;         // columns of a panel: a cell is multiplied with one at a time

  // True: each panel of the operand is copied to contiguous memory first. False: the operand is
  // read in place.
  bool pack = false;

  // True: sums are kept in a per-thread scratch buffer until they are complete. False: they are
  // added up in the result.
  bool gather = false;

  friend bool operator==(const HostCells&, const HostCells&) = default;
};

// The properties of a layer that determine the cells of a product.
struct HostProblem {
  Dims size;  // g is not used
  BlockShape block;
  std::int64_t blocks = 0;  // stored
  DataType type = DataType::Float;

  // The average blocks of a row of the layer that this one is some rows of. Where the sums of a row
  // are interrupted follows from it, so that all parts of a layer have its bits.
  std::optional<double> blocks_in_row = {};
};

// The cut of the columns of one call. A call may have another number of columns than the layer was
// planned for: fewer cost what they are, more run in more panels.
struct HostColumns {
  std::int64_t width = 1;   // columns of a panel; the last one may have fewer
  std::int64_t stride = 1;  // elements from row to row in a copied panel
  bool pack = false;        // as HostCells::pack

  // Floats of a vector, if copied rows of a panel are filled up with zeros to whole vectors, whose
  // columns are computed, too: vectors that begin between cache lines cost more. 1: rows end where
  // the panel does.
  std::int64_t lanes = 1;

  // Returns the columns that are computed for `columns` of a copied panel.
  std::int64_t computed(std::int64_t columns) const;

  friend bool operator==(const HostColumns&, const HostColumns&) = default;
};

// Returns the cells of Q = R * S, where sums stay in registers over the non-zeros of a row in a
// cell. With elements, a cell's slice of S fits in L1, unless a row then had so few non-zeros that
// loading and storing its sums would dominate; a panel has 64 columns at most, 96 if its rows
// still have 20 non-zeros, or 512 (floats, in whole vectors) where most rows of R are empty, and is
// rounded up to whole vectors, or to 4 or 8 columns. S is copied into panels where its rows are
// read 8 times or more. One thread has one cell along x, or more where one would have too many
// values to count in 16 bits; several threads need more cells, to share those of a panel. With
// blocks, a cell has all of y and a sixteenth of x, or for one thread more, as long as words of 16
// bits can count its values, but no more than has its results in a quarter of L2; S is read in
// place. Sums are added in the same order for any number of threads. Operands of blocks whose rows
// are far apart are copied.
HostCells product_cells(const HostProblem& problem, const host::HostCpu& cpu, int threads);

// Returns true if kernels use vectors of 32 bytes or less.
bool has_narrow_vectors(const host::HostCpu& cpu);

// The most columns of a product of blocks that reads floats where the problem has 16 bits.
inline constexpr std::int64_t kMostWideColumns = 64;

// Returns true if the product of a problem in 16 bits reads floats, which it widens, because a
// number of 16 bits costs up to five times a float: elements with fewer than 16 columns, if each
// row of S is read twice at least (8 times with several columns and vectors of 64 bytes), and with
// more if it is read 16 times, unless vectors have 64 bytes and slices of S are in L2;
// blocks, if each row is read twice, and 6 times with 16 to kMostWideColumns columns, but for those
// of bfloat16 where the CPU multiplies pairs of them fast. Calls of such blocks with more columns
// read 16 bits.
bool widens(const HostProblem& problem, const host::HostCpu& cpu);

// Returns true if a product of elements copies panels of S whose rows do not begin at the
// boundaries of vectors: it reads each row so often that loads across cache lines cost more.
bool copies_unaligned(const HostProblem& problem, const host::HostCpu& cpu);

// Returns `columns` rounded up to whole vectors of so many elements, or to one shorter vector of 4
// or more; 1 stays 1, and vectors of 4 elements or fewer change nothing.
std::int64_t whole_vectors(std::int64_t columns, std::int64_t lanes);

// Returns the cells of dR = dQ * transpose(S) where R is. A cell's slice of S fits in L2, or in one
// and a half of it where its rows have fewer than 12 values of R, and a panel has 256 columns at
// most, or 128 where such a slice would fill L2: enough to make up for adding the lanes of each
// sum.
HostCells gradient_cells(const HostProblem& problem, const host::HostCpu& cpu);

// Returns true if GradW of elements reads panels of S, whose rows are so many elements apart, where
// they are: its rows are read so few times that a copy would cost more than it saves.
bool reads_in_place(const HostProblem& problem, std::int64_t row_stride);

// Returns the smaller form of the positions of so many values in packed rows: one bit a place, or
// one byte a value and one for each 256 places.
codelets::PackedPositions packed_positions(std::int64_t rows, std::int64_t cols,
                                           std::int64_t values);

// Return the cut of `z` columns for cells that were made by the functions above for `problem`, of
// whose size z is the planned number of columns. For that number they are the cells' own panels. A
// panel of elements is as wide as a planned one, because the cells' slices of S fit in a cache with
// it; where fewer than 16 columns were planned it has up to 64. The stride is a multiple of the
// planned panel's width, so that the words of a cell give offsets into the copy.
HostColumns product_columns(const HostCells& cells, HostProblem problem, std::int64_t z,
                            const host::HostCpu& cpu);
HostColumns gradient_columns(const HostCells& cells, std::int64_t z);

// Returns the cut of `z` columns of an operand of blocks that is transposed as it is copied: panels
// of at most 64 columns, of which copies and sums stay in near caches while they are turned.
HostColumns turned_columns(std::int64_t z);

}  // namespace tessera::host
