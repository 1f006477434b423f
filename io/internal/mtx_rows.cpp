#include "tessera/io/internal/mtx_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::io::internal {

void RowCounts::add(const MtxBatch& batch) {
  for (const std::int32_t row : batch.row) ++row_begin_[static_cast<std::size_t>(row) + 1];
  for (std::size_t i = 0; is_in_order_ && i < batch.size(); ++i) {
    is_in_order_ =
        batch.row[i] > last_row_ || (batch.row[i] == last_row_ && batch.col[i] > last_col_);
    last_row_ = batch.row[i];
    last_col_ = batch.col[i];
  }
}

std::vector<std::int64_t> RowCounts::take_row_begin() && {
  for (std::size_t r = 1; r < row_begin_.size(); ++r) row_begin_[r] += row_begin_[r - 1];
  return std::move(row_begin_);
}

RowFiller::RowFiller(std::span<const std::int64_t> row_begin, Range rows, const MtxEntries& entries)
    : row_begin_(row_begin),
      rows_(rows),
      first_(row_begin[static_cast<std::size_t>(rows.begin)]),
      next_(row_begin.begin() + rows.begin, row_begin.begin() + rows.end),
      entries_(entries) {}

void RowFiller::refuse_change() const {
  throw Error(ErrorCode::BadInput, entries_.name() + ": the file has changed while it was read");
}

void RowFiller::check_full() const {
  if (!std::equal(next_.begin(), next_.end(), row_begin_.begin() + rows_.begin + 1))
    refuse_change();
}

void refuse_twins(MtxEntries& entries, const Twins& twins) {
  std::int64_t first = 0, again = 0;
  entries.read([&](const MtxBatch& batch) {
    for (std::size_t i = 0; i < batch.size() && again == 0; ++i)
      if (batch.row[i] == twins.row && batch.col[i] == twins.col)
        (first == 0 ? first : again) = batch.lines_before + batch.line[i];
  });
  const bool is_general = entries.header().symmetry == MtxSymmetry::General;
  throw Error(ErrorCode::BadInput,
              fmt::format("{}:{}: row {}, column {} is given twice{}, first on line {}; drop one "
                          "or add them up",
                          entries.name(), again, twins.row + 1, twins.col + 1,
                          is_general ? "" : " (mirrored or not)", first));
}

}  // namespace tessera::io::internal
