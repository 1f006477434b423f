#include "tessera/arrays/internal/fast_product.hpp"

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "tessera/arrays/ops/element.hpp"
#include "tessera/host/spmm.hpp"

namespace tessera::arrays::internal {
namespace {

template <class T>
constexpr bool kHostMultiplies =
    std::is_same_v<T, float> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Returns the positions [rows + 1] at which rows begin, counted from the first one, or an empty
// list if there are gaps between rows.
template <class T>
std::vector<std::int64_t> positions_of(const RowsView<T>& a) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(a.rows) + 1);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    if (r > 0 && a.begin[r] != a.end[r - 1]) return {};
    positions[std::size_t(r) + 1] = a.end[r] - a.begin[0];
  }
  return positions;
}

}  // namespace

template <class T>
bool fast_product(const RowsView<T>& a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta,
                  Executor& executor) {
  if constexpr (kHostMultiplies<T>) {
    if (a.rows == 0 || a.first_col != 0 || (b.cols == 1 && std::is_same_v<T, float>)) return false;
    const std::vector<std::int64_t> positions = positions_of(a);
    if (positions.empty()) return false;
    const std::int64_t first = a.begin[0];
    const auto places = static_cast<std::size_t>(positions.back());
    const host::CompressedRows<T, std::int32_t, std::int64_t> rows{
        a.rows, a.cols, {1, 1}, positions, {a.columns + first, places}, {a.values + first, places}};
    host::spmm<T>(rows, b, c, executor, {.alpha = float(alpha), .beta = float(beta)});
    return true;
  } else {
    return false;
  }
}

#define TESSERA_INSTANTIATE_FAST_PRODUCT(T)                                                \
  template bool fast_product(const RowsView<T>&, MatrixView<const T>, MatrixView<T>, T, T, \
                             Executor&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_FAST_PRODUCT)

#undef TESSERA_INSTANTIATE_FAST_PRODUCT

}  // namespace tessera::arrays::internal
