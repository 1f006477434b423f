#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/codelets/cost/embedding_cycles.hpp"

namespace tessera::codelets {

// One visit of a tile to one bucket, for the rows of its cell that are looked up. A looked-up row
// has a slot; records of other cells are skipped.
//   meta     words of a forward bucket, up to its end marker
//   values   the bucket's values, input type, in record order
//   slot_of  the slot of each row of the cell, -1 for rows that are not looked up   [rows of x]
//   columns  the columns of the cell that take part; others are skipped
//   slots    elements from column to column of a dense operand or result
// Requires buckets that an encoder wrote for this type, block and width of words.
struct RowsArgs {
  const void* meta = nullptr;
  const void* values = nullptr;
  std::int64_t sub_group = 0;
  BlockShape block;
  DataType type = DataType::Float;
  std::int64_t word_bits = 16;
  std::span<const std::int32_t> slot_of = {};
  Range columns = {};
  std::int64_t slots = 0;
  std::int64_t workers = 6;  // the looked-up rows are dealt to them in turn, for the cost
};

// Writes the stored values of looked-up rows to out [columns][slots], from column columns.begin on,
// in the input type. What is not stored keeps its value. Never allocates for up to 64 workers;
// thread-safe.
RowsWork copy_rows(const RowsArgs& args, void* out);

// Adds in [columns][slots], in the input type, to the sums of the stored values of looked-up rows:
// floats in record order, as the bucket's values.
RowsWork add_to_rows(const RowsArgs& args, const void* in, float* sums);

}  // namespace tessera::codelets
