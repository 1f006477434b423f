#pragma once

#include <algorithm>
#include <cstdint>

#include "tessera/base/dims.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"

// The division of a tile's blocks among its workers, in kernels for a pattern that never changes.
// The words of the tile, the kernels' cycles and the planner all take it from here.
namespace tessera::codelets {

// The workers of a kernel of elements.
struct ElementSplit {
  std::int64_t takers = 1;  // workers that take different rows
  std::int64_t z = 1;       // batch columns of a worker; those of the second half may have fewer
  bool one_row_each = false;
};

// Returns the split of `rows` rows and z batch columns. Where three rows or fewer (half as many as
// workers) would leave workers idle, two groups of workers take half of the columns each.
constexpr ElementSplit element_split(std::int64_t rows, std::int64_t z, std::int64_t z_grain,
                                     std::int64_t workers) {
  constexpr std::int64_t kHalvedColumns = 8;  // a half of so many is whole vectors of any type
  if (rows <= workers / 2 && z % kHalvedColumns == 0)
    return {workers / 2, round_up(z / 2, z_grain), false};
  return {workers, z, rows <= workers};
}

// Calls use(rows, blocks) for each worker that takes rows, with its Range of rows and the number of
// its blocks. Rows are dealt in order, until each worker has its share of all `blocks`.
// blocks_of(row) is the number of blocks of a row.
template <class BlocksOf, class Use>
void deal_rows(const ElementSplit& split, std::int64_t rows, std::int64_t blocks,
               const BlocksOf& blocks_of, const Use& use) {
  for (std::int64_t next = 0; next < rows;) {
    Range own{next, next};
    std::int64_t taken = 0;
    do {
      taken += blocks_of(next);
      own.end = ++next;
    } while (!split.one_row_each && next < rows && taken * split.takers < blocks);
    use(own, taken);
  }
}

// Returns the cycles of a GradW kernel with z batch columns: those of the dynamic kernels without a
// search. Every worker takes an equal run of the blocks, which may begin and end inside a row.
// for_each_row(visit) calls visit(blocks of the row) for every row and is called twice.
template <class ForEachRow>
Cycles static_gradient_cycles(const StaticKernel& kernel, std::int64_t z, std::int64_t workers,
                              const ForEachRow& for_each_row) {
  const MatMulKernel dynamic{
      .method = kernel.block.is_element() ? Method::ElementGradW : Method::BlockGradW,
      .data_type = kernel.type,
      .partials_type = DataType::Float,
      .block = kernel.block,
      .workers = workers};
  std::int64_t blocks = 0, all_rows = 0;
  for_each_row([&](std::int64_t of_row) {
    blocks += of_row;
    ++all_rows;
  });
  const std::int64_t run = ceil_div(blocks, workers);
  const LinearCycles cycles = worker_cycles(dynamic, z);
  Cycles slowest;
  std::int64_t rows = 0, taken = 0;
  for_each_row([&](std::int64_t left) {
    while (left > 0) {
      const std::int64_t take = std::min(left, run - taken);
      ++rows;
      taken += take;
      left -= take;
      slowest = std::max(slowest, cycles(rows, taken));
      if (taken == run) rows = taken = 0;
    }
  });
  return supervisor_load_cycles(dynamic, z)(all_rows, blocks) + workers * slowest;
}

}  // namespace tessera::codelets
