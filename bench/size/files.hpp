#pragma once

#include <cstdint>
#include <string>

namespace tessera::bench {

// The files that size_bench reads: scattered elements of a square matrix, the same number in each
// row, with values of six decimals.
struct Scattered {
  std::int64_t side = 50'000, per_row = 400;

  std::int64_t entries() const { return side * per_row; }
  // The matrix as sparse::Csr<double>.
  double bytes() const { return double(entries()) * 12 + double(side + 1) * 8; }
};

enum class EntryOrder { ByRow, Shuffled };
enum class Triangle { Both, LowerOfSymmetric };

// Write .mtx files in pieces. A shuffled file takes the entries of every row in turn, rows in an
// order that a multiplier scatters. A symmetric file has the entries below the diagonal.
void write_scattered_mtx(const std::string& path, const Scattered& matrix, EntryOrder order,
                         Triangle triangle = Triangle::Both);

}  // namespace tessera::bench
