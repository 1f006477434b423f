#include <cstdint>
#include <vector>

#include "tessera/sparse/change.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"

namespace tessera::fuzz {
namespace {

BlockShape any_block(InputBytes& bytes) {
  return bytes.flag() ? BlockShape{1, 1} : BlockShape{bytes.number(-1, 4), bytes.number(-1, 4)};
}

// A size: mostly small, sometimes any number.
std::int64_t any_size(InputBytes& bytes) {
  return bytes.number(0, 9) == 0 ? bytes.any_number() : bytes.number(0, 12);
}

// Gives a matrix any number of rows and columns, and any block.
template <class Matrix>
void set_any_shape(Matrix& matrix, InputBytes& bytes) {
  matrix.rows = any_size(bytes);
  matrix.cols = any_size(bytes);
  matrix.block = any_block(bytes);
}

void set_any_rows(sparse::Coo<float>& matrix, InputBytes& bytes) {
  matrix.row = bytes.numbers<std::int32_t>(12, -1, 8);
}
void set_any_rows(sparse::Csr<float>& matrix, InputBytes& bytes) {
  matrix.row_begin = bytes.numbers<std::int64_t>(8, -1, 9);
}

template <class Matrix>
Matrix any_matrix(InputBytes& bytes) {
  Matrix matrix;
  set_any_shape(matrix, bytes);
  set_any_rows(matrix, bytes);
  matrix.col = bytes.numbers<std::int32_t>(12, -1, 8);
  matrix.values = bytes.numbers<float>(60, -3, 3);
  return matrix;
}

// Conversions allocate by the number of rows, which a matrix may declare as it likes.
bool is_small(std::int64_t rows, std::int64_t cols) { return rows <= 4096 && cols <= 4096; }

void check_conversions(const sparse::Csr<float>& matrix, InputBytes& bytes) {
  sparse::check(matrix);
  require(sparse::to_csr(sparse::to_csc(matrix)) == matrix, "a CSC converts back");
  require(sparse::to_csr(sparse::to_coo(matrix)) == matrix, "a COO converts back");
  require(sparse::transpose(sparse::transpose(matrix)) == matrix, "transposing is its own inverse");
  accepts([&] { sparse::check(sparse::with_block(matrix, any_block(bytes))); });
  accepts([&] {
    sparse::check(sparse::with_shape(matrix, bytes.number(-1, 20), bytes.number(-1, 20)));
  });
  accepts([&] {
    const sparse::PatternChange change{
        .removed = {{std::int32_t(bytes.number(-1, 8)), std::int32_t(bytes.number(-1, 8))}},
        .added = {{std::int32_t(bytes.number(-1, 8)), std::int32_t(bytes.number(-1, 8))}}};
    const auto changed = sparse::with_change(matrix, change);
    sparse::check(changed);
    require(sparse::with_change(matrix, sparse::difference(matrix, changed)).col == changed.col,
            "a difference leads to the changed pattern");
  });
}

}  // namespace

void storage_formats(Input input) {
  InputBytes bytes(input);
  if (bytes.flag()) {
    const auto matrix = any_matrix<sparse::Coo<float>>(bytes);
    const auto duplicates = bytes.flag() ? sparse::Duplicates::Sum : sparse::Duplicates::Refuse;
    if (is_small(matrix.rows, matrix.cols))
      accepts([&] { check_conversions(sparse::to_csr(matrix, duplicates), bytes); });
  } else {
    const auto matrix = any_matrix<sparse::Csr<float>>(bytes);
    accepts([&] {
      sparse::check(matrix);
      if (is_small(matrix.rows, matrix.cols)) check_conversions(matrix, bytes);
    });
  }
}

}  // namespace tessera::fuzz
