#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// A square matrix and the operands of products with it, in both orders.
struct SpmmCase {
  std::int64_t side = 0, z = 0;
  double density = 0;
  sparse::Csr<float> matrix, elements;  // the same values in blocks, and in elements
  Matrix<float> s, q;                   // [features][batch]
  Matrix<float> s_batch, q_batch;       // [batch][features]

  SpmmCase(std::int64_t side, BlockShape block, double density, std::int64_t z);

  host::CompressedRows<float, std::int32_t, std::int64_t> rows() const {
    return {side, side, matrix.block, matrix.row_begin, matrix.col, matrix.values};
  }
  // Returns the largest difference between q and another product, by the largest number of q.
  double worst_difference(const Matrix<float>& other) const;
};

// Seconds of one product on one thread, by its processor time. 0: not measured.
struct SpmmTimes {
  double call = 0, call_batch = 0;          // host::spmm, in both orders of the operands
  double prepared = 0, prepared_batch = 0;  // host::Prepared
  double eigen = 0, scipy = 0;
};

// Measures all of them; ours and Eigen run in turns, SciPy in a process of its own, before and
// after. `python` is empty or a Python that may have SciPy. Results are compared before anything is
// timed; std::runtime_error if one differs.
SpmmTimes measure(SpmmCase& c, const std::string& python, int repeats);

// Seconds of the other calls on the same matrix, which has elements.
struct OtherTimes {
  double columns = 0, sorted_places = 0, places = 0;  // spmm of the other views
  double sampled = 0;                                 // sddmm at the same places
};
OtherTimes measure_others(SpmmCase& c, int repeats);

// Seconds of spmv on a matrix larger than the caches, and of reading its values and columns at the
// rate of one thread.
struct VectorTimes {
  double product = 0, reading = 0;
};
VectorTimes measure_vector(int repeats);

}  // namespace tessera::bench
