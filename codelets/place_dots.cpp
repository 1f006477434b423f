#include "tessera/codelets/place_dots.hpp"

#include <cstddef>
#include <iterator>

#include "tessera/base/half.hpp"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"
#include "tessera/codelets/internal/listed_columns.hpp"

namespace tessera::codelets {
namespace {

template <class T, class Index>
void element_place_dots(const PlaceDots<T, Index>& dots) noexcept {
  const internal::TermRow row{0, std::ssize(dots.columns), 0, std::as_bytes(dots.columns).data()};
  internal::element_dots(internal::ElementDots<T>{.rows = {&row, 1},
                                                  .code = internal::kListedColumns<Index>,
                                                  .q_grad = dots.q_grad,
                                                  .q_grad_stride = dots.q_grad_stride,
                                                  .s = dots.s,
                                                  .s_stride = dots.s_stride,
                                                  .gradients = dots.gradients,
                                                  .z = dots.z,
                                                  .replaces = dots.replaces});
}

template <class T, class Index>
void block_place_dots(const PlaceDots<T, Index>& dots) noexcept {
  internal::for_each_block_part(dots.columns, dots.block.cols,
                                [&](std::span<const std::uint32_t> columns, std::int64_t first) {
                                  internal::block_dots(internal::BlockDots<T>{
                                      .row = 0,
                                      .columns = columns,
                                      .gradients = dots.gradients + first * dots.block.area(),
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
  if (dots.columns.empty()) return;
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
