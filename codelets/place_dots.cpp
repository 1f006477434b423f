#include "tessera/codelets/place_dots.hpp"

#include <cstddef>
#include <cstdint>

#include "tessera/base/half.hpp"
#include "tessera/codelets/internal/fast/term_rows.hpp"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"
#include "tessera/codelets/internal/listed_columns.hpp"

namespace tessera::codelets {
namespace {

template <class T, class Index>
void element_place_dots(const PlaceDots<T, Index>& dots) noexcept {
  const auto compute = [&](std::span<const internal::TermRow> rows) {
    internal::element_dots(internal::ElementDots<T>{.rows = rows,
                                                    .code = internal::kListedColumns<Index>,
                                                    .q_grad = dots.q_grad,
                                                    .q_grad_stride = dots.q_grad_stride,
                                                    .s = dots.s,
                                                    .s_stride = dots.s_stride,
                                                    .gradients = dots.gradients,
                                                    .z = dots.z,
                                                    .replaces = dots.replaces});
  };
  internal::TermRows list;
  for (const RowPlaces& places : dots.rows) {
    if (places.count == 0) continue;
    list.add({places.row, places.count, places.first,
              reinterpret_cast<const std::byte*>(dots.columns.data() + places.first)});
    if (!list.is_full()) continue;
    compute(list.rows());
    list.clear();
  }
  compute(list.rows());
}

template <class T, class Index>
void block_place_dots(const PlaceDots<T, Index>& dots) noexcept {
  for (const RowPlaces& places : dots.rows)
    internal::for_each_block_part(
        dots.columns.subspan(std::size_t(places.first), std::size_t(places.count)), dots.block.cols,
        [&](std::span<const std::uint32_t> columns, std::int64_t first) {
          internal::block_dots(internal::BlockDots<T>{
              .row = places.row * dots.block.rows,
              .columns = columns,
              .gradients = dots.gradients + (places.first + first) * dots.block.area(),
              .rows = dots.block.rows,
              .cols = dots.block.cols,
              .q_grad = dots.q_grad,
              .q_grad_stride = dots.q_grad_stride,
              .s = dots.s,
              .s_stride = dots.s_stride,
              .z = dots.z,
              .replaces = dots.replaces});
        });
}

}  // namespace

template <class T, class Index>
void place_dots(const PlaceDots<T, Index>& dots) noexcept {
  if (dots.block.is_element())
    element_place_dots(dots);
  else
    block_place_dots(dots);
}

#define TESSERA_PLACE_DOTS(T)                                           \
  template void place_dots(const PlaceDots<T, std::int32_t>&) noexcept; \
  template void place_dots(const PlaceDots<T, std::int64_t>&) noexcept;
TESSERA_PLACE_DOTS(float)
TESSERA_PLACE_DOTS(Half)
TESSERA_PLACE_DOTS(BFloat16)
#undef TESSERA_PLACE_DOTS

}  // namespace tessera::codelets
