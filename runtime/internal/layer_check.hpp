#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::runtime::internal {

// Returns the damage of programs that ran one after the other for a pass.
verify::MemoryDamage memory_damage(std::initializer_list<device::Damage> programs);

// Returns a matrix of single elements that stores a zero at every place.
sparse::Csr<float> full_matrix(std::int64_t rows, std::int64_t cols);

// Returns the rows of one group of a matrix with as many rows of every group.
template <class T>
MatrixView<T> group_of(MatrixView<T> all, std::int64_t rows, std::int64_t group) {
  return all.sub({group * rows, (group + 1) * rows}, {0, all.cols});
}

// Returns the bytes of every tile that the buckets of all layouts of a plan take; a dense plan has
// none.
Bytes resident_bytes(const planner::Plan& plan, DataType type, const device::Machine& machine);

}  // namespace tessera::runtime::internal
