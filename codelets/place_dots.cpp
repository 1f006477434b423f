#include "tessera/codelets/place_dots.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "tessera/codelets/internal/fast/vector_kernels.hpp"

namespace tessera::codelets {
namespace {

void element_place_dots(const PlaceDots& dots) noexcept {
  // The list of columns is read as words of 32 bits that name rows of s.
  constexpr internal::RowCode kColumns{
      .mask = 0xffffffff, .step = sizeof(std::int32_t), .shift = 0, .inverse = 1, .scale = 1};
  const internal::TermRow row{0, std::ssize(dots.columns), 0, std::as_bytes(dots.columns).data()};
  internal::element_dots({.rows = {&row, 1},
                          .code = kColumns,
                          .q_grad = dots.q_grad,
                          .q_grad_stride = dots.q_grad_stride,
                          .s = dots.s,
                          .s_stride = dots.s_stride,
                          .gradients = dots.gradients,
                          .z = dots.z,
                          .replaces = dots.replaces});
}

void block_place_dots(const PlaceDots& dots) noexcept {
  constexpr std::size_t kAtOnce = 64;
  std::array<std::uint32_t, kAtOnce> columns;
  float* gradients = dots.gradients;
  for (std::size_t first = 0; first < dots.columns.size(); first += kAtOnce) {
    const auto part = dots.columns.subspan(first, std::min(kAtOnce, dots.columns.size() - first));
    std::transform(part.begin(), part.end(), columns.begin(), [&](std::int32_t column) {
      return static_cast<std::uint32_t>(column * dots.block.cols);
    });
    internal::block_dots({.row = 0,
                          .columns = {columns.data(), part.size()},
                          .gradients = gradients,
                          .rows = dots.block.rows,
                          .cols = dots.block.cols,
                          .q_grad = dots.q_grad,
                          .q_grad_stride = dots.q_grad_stride,
                          .s = dots.s,
                          .s_stride = dots.s_stride,
                          .z = dots.z,
                          .replaces = dots.replaces});
    gradients += std::ssize(part) * dots.block.area();
  }
}

}  // namespace

void place_dots(const PlaceDots& dots) noexcept {
  if (dots.columns.empty()) return;
  if (dots.block.is_element())
    element_place_dots(dots);
  else
    block_place_dots(dots);
}

}  // namespace tessera::codelets
