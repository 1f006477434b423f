#include "tessera/arrays/optim/masters.hpp"

#include <algorithm>
#include <variant>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"

namespace tessera::arrays {
namespace {

using sparse::Csr;

template <class W>
std::vector<float> widened(const std::vector<W>& values) {
  std::vector<float> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(),
                 [](W value) { return static_cast<float>(value); });
  return result;
}

template <class W>
Array<float> in_float(const DenseArray<W>& a) {
  return DenseArray<float>{a.shape, widened(a.values)};
}
template <class W>
Array<float> in_float(const RowSparse<W>& a) {
  return RowSparse<float>{a.shape, a.rows, widened(a.values)};
}
template <class W>
Array<float> in_float(const Csr<W>& a) {
  return Csr<float>{a.rows, a.cols, a.block, a.row_begin, a.col, widened(a.values)};
}

template <class W>
void require_one_layout(const Array<W>& weight, const Array<float>& master) {
  check(weight);
  check(master);
  bool fits = shape_of(weight) == shape_of(master) && storage_of(weight) == storage_of(master);
  const auto* rows = std::get_if<RowSparse<W>>(&weight);
  if (fits && rows != nullptr) fits = rows->rows == std::get<RowSparse<float>>(master).rows;
  const auto* csr = std::get_if<Csr<W>>(&weight);
  if (fits && csr != nullptr)
    fits = csr->row_begin == std::get<Csr<float>>(master).row_begin &&
           csr->col == std::get<Csr<float>>(master).col;
  if (!fits)
    throw Error(ErrorCode::InvalidArgument,
                "step_with_masters: weight and master differ in shape, storage or pattern; see "
                "make_masters");
}

template <class T>
std::vector<T>& values_in(Array<T>& array) {
  return std::visit([](auto& any) -> std::vector<T>& { return any.values; }, array);
}

// Returns the values that belong to a row of a weight, all of whose rows are stored.
template <class W>
Range values_of_row(const Array<W>& weight, std::int64_t r, std::int64_t row_size) {
  if (const auto* csr = std::get_if<Csr<W>>(&weight))
    return {csr->row_begin[std::size_t(r)], csr->row_begin[std::size_t(r) + 1]};
  return {r * row_size, (r + 1) * row_size};
}

}  // namespace

template <class W>
Array<float> make_masters(const Array<W>& weight) {
  check(weight);
  return std::visit([](const auto& any) { return in_float(any); }, weight);
}

template <class W>
void step_with_masters(const train::Optimiser& optimiser, Array<W>& weight, Array<float>& master,
                       const Array<W>& gradient, State<float>& state) {
  require_one_layout(weight, master);
  step(optimiser, master, make_masters(gradient), state);
  std::vector<W>& values = values_in(weight);
  const std::vector<float>& masters = values_in(master);
  const auto round = [&](Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i)
      values[std::size_t(i)] = W(masters[std::size_t(i)]);
  };
  const auto* rows = std::get_if<RowSparse<W>>(&gradient);
  const bool states_are_alike =
      state.arrays.empty() || storage_of(state.arrays[0]) == storage_of(master);
  if (rows == nullptr || !optimiser.lazy || !states_are_alike)
    return round({0, std::ssize(values)});
  for (const std::int64_t r : rows->rows) round(values_of_row(weight, r, rows->row_size()));
}

#define TESSERA_INSTANTIATE_MASTERS(W)                                               \
  template Array<float> make_masters(const Array<W>&);                               \
  template void step_with_masters(const train::Optimiser&, Array<W>&, Array<float>&, \
                                  const Array<W>&, State<float>&);

TESSERA_INSTANTIATE_MASTERS(Half)
TESSERA_INSTANTIATE_MASTERS(BFloat16)

#undef TESSERA_INSTANTIATE_MASTERS

}  // namespace tessera::arrays
