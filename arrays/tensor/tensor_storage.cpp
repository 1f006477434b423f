#include <algorithm>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/sort_entries.hpp"
#include "tessera/arrays/internal/storage.hpp"
#include "tessera/arrays/tensor/internal/coo_access.hpp"
#include "tessera/arrays/tensor/internal/sliced_access.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays::internal {
namespace {

// Returns true if the view shows the place.
bool shows(const TensorLayout& layout, const std::int32_t* index) {
  bool seen = true;
  for (std::size_t d = 0; d < layout.offsets.size(); ++d) {
    const std::int64_t at = index[d] - layout.offsets[d];
    seen &= at >= 0 && at < layout.lengths[d];
  }
  return seen;
}

// Calls see(run begin, run end) for the runs of entries in [begin, end) that the view shows.
template <class T, class See>
void runs_of_view(const CooStore<T>& store, const TensorLayout& layout, Range range, See&& see) {
  for (std::int64_t k = range.begin; k < range.end; ++k) {
    if (!shows(layout, store.index(std::size_t(k)))) continue;
    const std::int64_t begin = k;
    while (k < range.end && shows(layout, store.index(std::size_t(k)))) ++k;
    see(begin, k);
  }
}

// Returns true if the buffers, sorted by `order`, show the entries of the view in natural order.
bool is_natural(const std::vector<std::int64_t>& order) {
  return std::is_sorted(order.begin(), order.end());
}

// The key of an entry in a view.
class ViewKey {
 public:
  ViewKey(const TensorLayout& layout, const Fields& fields) {
    const std::vector<ViewAxis> axes = layout.axes();
    for (std::size_t d = 0; d < axes.size(); ++d)
      if (axes[d].dim >= 0 && fields.bits(d) > 0)
        parts_.push_back({std::size_t(axes[d].dim), axes[d].offset, fields.shift(d)});
  }
  std::uint64_t operator()(const std::int32_t* index) const {
    std::uint64_t key = 0;
    for (const Part& part : parts_)
      key |= static_cast<std::uint64_t>(index[part.dim] - part.offset) << part.shift;
    return key;
  }

 private:
  struct Part {
    std::size_t dim;
    std::int64_t offset;
    int shift;
  };
  std::vector<Part> parts_;
};

}  // namespace

template <class T>
void for_runs(CooTensor<T>& tensor, Executor& executor, const Change<T>& change) {
  CooStore<T>& store = CooAccess<T>::settled(tensor);
  const TensorLayout& layout = tensor.layout();
  const Range range = store.narrow(layout);
  const bool is_whole = layout.lengths == store.shape;
  for_chunks(range.size(), executor, [&](std::int64_t begin, std::int64_t end) {
    const auto run = [&](std::int64_t from, std::int64_t to) {
      change({store.values.data() + from, std::size_t(to - from)});
    };
    if (is_whole) return run(range.begin + begin, range.begin + end);
    runs_of_view(store, layout, {range.begin + begin, range.begin + end}, run);
  });
}

template <class T>
std::vector<T*> value_places(CooTensor<T>& tensor) {
  std::vector<T*> places;
  visit(tensor, [&](const std::int32_t*, T& value) { places.push_back(&value); });
  return places;
}

template <class T>
T* value_place(CooTensor<T>& tensor, std::span<const std::int64_t> index) {
  const auto entry = tensor.find(index);
  if (!entry) return nullptr;
  return &CooAccess<T>::settled(tensor).values[std::size_t(*entry)];
}

template <class T>
void for_runs(SlicedCsr<T>& matrix, Executor& executor, const Change<T>& change) {
  constexpr std::int64_t kRows = 64;
  CsrArrays<T>& arrays = SlicedAccess<T>::arrays(matrix);
  executor.for_each((matrix.rows() + kRows - 1) / kRows, [&](std::int64_t part) {
    const std::int64_t end = std::min(matrix.rows(), (part + 1) * kRows);
    Range run{0, 0};
    const auto flush = [&] {
      if (run.size() > 0) change({arrays.values.data() + run.begin, std::size_t(run.size())});
    };
    for (std::int64_t r = part * kRows; r < end; ++r) {
      const Range row = matrix.row(r);
      if (row.begin != run.end) {
        flush();
        run.begin = row.begin;
      }
      run.end = row.end;
    }
    flush();
  });
}

template <class T>
void for_runs(SlicedCsc<T>& matrix, Executor& executor, const Change<T>& change) {
  SlicedCsr<T> transposed = matrix.transposed();
  for_runs(transposed, executor, change);
}

template <class T>
Flat<T> flat_of(const CooTensor<T>& tensor, Executor& executor) {
  const CooStore<T>& store = CooAccess<T>::settled(tensor);
  const TensorLayout& layout = tensor.layout();
  Flat<T> flat{Fields(tensor.shape()), {}, T(0)};
  const ViewKey key(layout, flat.fields);
  const Range range = store.narrow(layout);
  const auto write = [&](std::int64_t from, std::int64_t end, std::int64_t to) {
    for (std::int64_t k = from; k < end; ++k, ++to)
      flat.entries[std::size_t(to)] = {key(store.index(std::size_t(k))),
                                       store.values[std::size_t(k)]};
  };
  std::vector<std::int64_t> starts(std::size_t((range.size() + kChunk - 1) / kChunk) + 1, 0);
  const bool is_whole = layout.lengths == store.shape;
  for_chunks(range.size(), executor, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t& count = starts[std::size_t(begin / kChunk) + 1];
    if (is_whole) count = end - begin;
    if (!is_whole)
      runs_of_view(store, layout, {range.begin + begin, range.begin + end},
                   [&](std::int64_t from, std::int64_t to) { count += to - from; });
  });
  for (std::size_t c = 1; c < starts.size(); ++c) starts[c] += starts[c - 1];
  flat.entries.resize(std::size_t(starts.back()));
  for_chunks(range.size(), executor, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t at = starts[std::size_t(begin / kChunk)];
    if (is_whole) return write(range.begin + begin, range.begin + end, at);
    runs_of_view(store, layout, {range.begin + begin, range.begin + end},
                 [&](std::int64_t from, std::int64_t to) {
                   write(from, to, at);
                   at += to - from;
                 });
  });
  if (!is_natural(store.order)) sort_entries(flat.entries, 0, flat.fields.bits(), executor);
  return flat;
}

namespace {

// Writes the entries of a sliced matrix with the row in field `row_dim` and the column in the
// other.
template <class T>
Flat<T> flat_of_rows(const SlicedCsr<T>& matrix, std::size_t row_dim, Executor& executor) {
  const std::int64_t rows = matrix.rows();
  Flat<T> flat{
      Fields(row_dim == 0 ? std::vector{rows, matrix.cols()} : std::vector{matrix.cols(), rows}),
      {},
      T(0)};
  std::vector<std::int64_t> starts(std::size_t(rows) + 1, 0);
  for (std::int64_t r = 0; r < rows; ++r)
    starts[std::size_t(r) + 1] = starts[std::size_t(r)] + matrix.row(r).size();
  flat.entries.resize(std::size_t(starts.back()));
  const CsrArrays<T>& arrays = matrix.arrays();
  for_chunks(rows, executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      auto at = std::size_t(starts[std::size_t(r)]);
      const Range row = matrix.row(r);
      for (std::int64_t k = row.begin; k < row.end; ++k, ++at)
        flat.entries[at] = {
            flat.fields.field(row_dim, r) |
                flat.fields.field(1 - row_dim, arrays.columns[std::size_t(k)] - matrix.first_col()),
            arrays.values[std::size_t(k)]};
    }
  });
  if (row_dim == 1) sort_entries(flat.entries, flat.fields.bits(1), flat.fields.bits(0), executor);
  return flat;
}

template <class T>
SlicedCsr<T> rows_of_flat(const Flat<T>& flat, std::size_t row_dim) {
  const Fields& fields = flat.fields;
  CsrArrays<T> arrays{fields.shape()[row_dim], fields.shape()[1 - row_dim], {}, {}, {}, {}};
  std::vector<std::int64_t> begin(std::size_t(arrays.rows) + 1, 0);
  for (const FlatEntry<T>& entry : flat.entries) {
    ++begin[std::size_t(fields.index(entry.key, row_dim)) + 1];
    arrays.columns.push_back(static_cast<std::int32_t>(fields.index(entry.key, 1 - row_dim)));
    arrays.values.push_back(entry.value);
  }
  for (std::size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  arrays.row_begin.assign(begin.begin(), begin.end() - 1);
  arrays.row_end.assign(begin.begin() + 1, begin.end());
  return SlicedCsr<T>(std::move(arrays));
}

// Returns zeros on large pages, which are then written from end to end.
template <class E>
std::vector<E> large_vector(std::size_t size) {
  std::vector<E> result;
  result.reserve(size);
  want_large_pages(result.data(), size * sizeof(E));
  result.resize(size);
  return result;
}

template <class T>
void require_zero_rest(const Flat<T>& flat, const std::string& what) {
  if (flat.rest != T(0)) refuse_rest(what);
}

}  // namespace

template <class T>
Flat<T> flat_of(const SlicedCsr<T>& matrix, Executor& executor) {
  return flat_of_rows(matrix, 0, executor);
}
template <class T>
Flat<T> flat_of(const SlicedCsc<T>& matrix, Executor& executor) {
  return flat_of_rows(matrix.transposed(), 1, executor);
}

template <class T>
CooTensor<T> tensor_of(Flat<T> flat, const std::string& what, Executor& executor) {
  require_zero_rest(flat, what);
  const Fields& fields = flat.fields;
  const std::size_t rank = fields.rank();
  std::vector<std::int32_t> indices = large_vector<std::int32_t>(flat.entries.size() * rank);
  std::vector<T> values = large_vector<T>(flat.entries.size());
  for_chunks(flat.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    std::int32_t* index = indices.data() + std::size_t(begin) * rank;
    for (std::int64_t k = begin; k < end; ++k) {
      const FlatEntry<T>& entry = flat.entries[std::size_t(k)];
      for (std::size_t d = 0; d < rank; ++d)
        *index++ = static_cast<std::int32_t>(fields.index(entry.key, d));
      values[std::size_t(k)] = entry.value;
    }
  });
  return CooAccess<T>::from_sorted(fields.shape(), std::move(indices), std::move(values));
}

template <class T>
CooTensor<T> stored_like(const CooTensor<T>&, Flat<T> flat, const std::string& what,
                         Executor& executor) {
  return tensor_of(std::move(flat), what, executor);
}
template <class T>
SlicedCsr<T> stored_like(const SlicedCsr<T>&, Flat<T> flat, const std::string& what, Executor&) {
  require_zero_rest(flat, what);
  return rows_of_flat(flat, 0);
}
template <class T>
SlicedCsc<T> stored_like(const SlicedCsc<T>&, Flat<T> flat, const std::string& what,
                         Executor& executor) {
  require_zero_rest(flat, what);
  const std::vector<std::int64_t> turned = {1, 0};
  Flat<T> columns{Fields(chosen(flat.fields.shape(), turned)), std::move(flat.entries), T(0)};
  const Repack repack(flat.fields, turned, columns.fields);
  for (FlatEntry<T>& entry : columns.entries) entry.key = repack(entry.key);
  sort_entries(columns.entries, columns.fields.bits(1), columns.fields.bits(0), executor);
  return SlicedCsc<T>(rows_of_flat(columns, 0));
}

template <class T>
void store_all(CooTensor<T>& tensor, const std::vector<T>& values) {
  std::size_t at = 0;
  for_each_index(tensor.shape(),
                 [&](std::span<const std::int64_t> index) { tensor.put(index, values[at++]); });
}
template <class T>
void store_all(SlicedCsr<T>& matrix, const std::vector<T>& values) {
  matrix.assign({values.data(), matrix.rows(), matrix.cols(), matrix.cols(), 1});
}
template <class T>
void store_all(SlicedCsc<T>& matrix, const std::vector<T>& values) {
  matrix.assign({values.data(), matrix.rows(), matrix.cols(), matrix.cols(), 1});
}

template <class T>
std::optional<CooTensor<T>> with_ones(const CooTensor<T>& tensor,
                                      const std::vector<std::int64_t>& shape) {
  TensorLayout layout = tensor.layout();
  layout.hidden.clear();
  const std::vector<std::int64_t> own = layout.shape();  // without added dimensions
  std::size_t next = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (next < own.size() && own[next] == shape[i])
      ++next;
    else if (shape[i] == 1)
      layout.hidden.push_back(static_cast<std::int64_t>(i));
    else
      return std::nullopt;
  }
  if (next != own.size()) return std::nullopt;
  return CooAccess<T>::view(tensor, std::move(layout));
}

#define TESSERA_INSTANTIATE_STORAGE(T)                                                            \
  template void for_runs(CooTensor<T>&, Executor&, const Change<T>&);                             \
  template std::optional<CooTensor<T>> with_ones(const CooTensor<T>&,                             \
                                                 const std::vector<std::int64_t>&);               \
  template std::vector<T*> value_places(CooTensor<T>&);                                           \
  template T* value_place(CooTensor<T>&, std::span<const std::int64_t>);                          \
  template void store_all(CooTensor<T>&, const std::vector<T>&);                                  \
  template void store_all(SlicedCsr<T>&, const std::vector<T>&);                                  \
  template void store_all(SlicedCsc<T>&, const std::vector<T>&);                                  \
  template void for_runs(SlicedCsr<T>&, Executor&, const Change<T>&);                             \
  template void for_runs(SlicedCsc<T>&, Executor&, const Change<T>&);                             \
  template Flat<T> flat_of(const CooTensor<T>&, Executor&);                                       \
  template Flat<T> flat_of(const SlicedCsr<T>&, Executor&);                                       \
  template Flat<T> flat_of(const SlicedCsc<T>&, Executor&);                                       \
  template CooTensor<T> tensor_of(Flat<T>, const std::string&, Executor&);                        \
  template CooTensor<T> stored_like(const CooTensor<T>&, Flat<T>, const std::string&, Executor&); \
  template SlicedCsr<T> stored_like(const SlicedCsr<T>&, Flat<T>, const std::string&, Executor&); \
  template SlicedCsc<T> stored_like(const SlicedCsc<T>&, Flat<T>, const std::string&, Executor&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_STORAGE)

#undef TESSERA_INSTANTIATE_STORAGE

}  // namespace tessera::arrays::internal
