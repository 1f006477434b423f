#include "tessera/distributed/internal/panels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::distributed::internal {

std::vector<Range> panel_ranges(std::int64_t z, std::int64_t width, std::int64_t most) {
  std::vector<Range> panels;
  const bool ends_single = z > width && z % width == 1;
  const std::int64_t end = ends_single ? z - 1 : z;
  const std::int64_t step = std::max<std::int64_t>(std::min(width, most), 1);
  for (std::int64_t first = 0; first < end; first += step)
    panels.push_back({first, std::min(first + step, end)});
  if (panels.size() > 1 && panels.back().size() == 1) {  // one column of a wider panel
    --panels[panels.size() - 2].end;
    --panels.back().begin;
  }
  if (ends_single) panels.push_back({end, z});
  return panels;
}

template <class T>
GatheredPanels<T>::GatheredPanels(Communicator& ranks, Executor& executor, const RowCut& cut,
                                  std::array<AlignedVector<T>, 2>& memory, std::string_view what,
                                  MatrixView<const T> own, std::vector<Range> panels,
                                  std::int64_t row_stride, bool is_checked)
    : ranks_(ranks),
      executor_(executor),
      cut_(cut),
      memory_(memory),
      what_(what),
      own_(own),
      panels_(std::move(panels)),
      stride_(row_stride),
      is_checked_(is_checked) {
  const auto elements = std::size_t(cut.rows() * stride_);
  for (std::size_t i = 0; i < std::min(memory_.size(), panels_.size()); ++i)
    if (memory_[i].size() < elements) memory_[i].resize(elements);
  if (count() > 0) start(0);
}

template <class T>
void GatheredPanels<T>::copy_own(std::int64_t panel, T* to) const {
  if (own_.rows == 0) return;         // a rank without rows may have no memory either
  constexpr std::int64_t kRows = 64;  // copied by one task
  const std::int64_t stride = row_stride(panel);
  const MatrixView<const T> from = own_.sub({0, own_.rows}, columns(panel));
  const auto copy = [&](std::int64_t task) {
    const std::int64_t end = std::min(from.rows, (task + 1) * kRows);
    for (std::int64_t r = task * kRows; r < end; ++r) {
      T* const row = to + r * stride;
      if (from.rows_are_contiguous())
        std::memcpy(row, from.row(r), std::size_t(from.cols) * sizeof(T));
      else
        for (std::int64_t c = 0; c < from.cols; ++c) row[c] = from(r, c);
    }
  };
  constexpr std::int64_t kFew = std::int64_t{1} << 15;  // elements, for which no thread is woken
  const std::int64_t tasks = ceil_div(from.rows, kRows);
  if (from.rows * from.cols < kFew)
    for (std::int64_t task = 0; task < tasks; ++task) copy(task);
  else
    executor_.for_each(tasks, copy);
}

template <class T>
std::span<T> GatheredPanels<T>::rows_of(std::int64_t panel, int rank) const {
  const Range rows = cut_.of(rank);
  const std::int64_t stride = row_stride(panel);
  return std::span(memory_[std::size_t(panel % 2)].data() + rows.begin * stride,
                   std::size_t(rows.size() * stride));
}

template <class T>
void GatheredPanels<T>::start(std::int64_t panel) {
  const auto slot = std::size_t(panel % 2);
  transfers_[slot].wait();  // the panel before the last one was sent from this memory
  const int own = ranks_.rank();
  // Rows that lie like those of the panel travel from where they are, while they are copied.
  const std::int64_t stride = row_stride(panel);
  const bool as_they_are = own_.rows_are_contiguous() && own_.row_stride == stride &&
                           columns(panel).size() == own_.cols && own_.cols == stride;
  if (!as_they_are) copy_own(panel, rows_of(panel, own).data());
  const std::span<const T> own_rows =
      as_they_are ? std::span(own_.data, std::size_t(own_.rows * stride)) : rows_of(panel, own);
  transfers_[slot] = ranks_.start_all(
      what_, [&](int) { return own_rows; }, [&](int rank) { return rows_of(panel, rank); },
      is_checked_);
  if (as_they_are) copy_own(panel, rows_of(panel, own).data());
}

template <class T>
MatrixView<const T> GatheredPanels<T>::next() {
  const std::int64_t panel = next_++;
  const auto slot = std::size_t(panel % 2);
  if (next_ < count()) start(next_);
  transfers_[slot].wait_received();
  return {memory_[slot].data(), cut_.rows(), columns(panel).size(), row_stride(panel), 1};
}

template <class T>
void GatheredPanels<T>::end() {
  for (Transfer& transfer : transfers_) transfer.wait();
}

template class GatheredPanels<float>;
template class GatheredPanels<Half>;
template class GatheredPanels<BFloat16>;

}  // namespace tessera::distributed::internal
