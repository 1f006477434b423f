#include "tessera/host/mask_product.hpp"

#include <fmt/format.h>

#include <array>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/host/sddmm.hpp"

namespace tessera::host {
namespace {

// Returns the rows of a group, transposed if they are stored so.
template <class T>
MatrixView<const T> operand_of_group(const char* name, MatrixView<const T> all, std::size_t group,
                                     std::size_t groups, bool transposed) {
  const std::int64_t rows = all.rows / std::int64_t(groups);
  if (rows * std::int64_t(groups) != all.rows)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("product at a mask: {} has {} rows, which are not a multiple of the {} "
                            "groups",
                            name, all.rows, groups));
  const std::int64_t first = std::int64_t(group) * rows;
  const MatrixView<const T> own = all.sub({first, first + rows}, {0, all.cols});
  return transposed ? own.transposed() : own;
}

}  // namespace

template <class T>
void mask_product(std::span<const sparse::Csr<float>> masks, bool transpose_lhs, bool transpose_rhs,
                  MatrixView<const T> a, MatrixView<const T> b, std::span<float> values,
                  Executor& executor) {
  std::size_t count = 0;
  for (const sparse::Csr<float>& mask : masks) {
    count += mask.values.size();
    // Zeros of the mask are read after the products were written.
    check_memory("product at a mask", footprint("values", values),
                 std::array{footprint("the mask", std::span<const float>(mask.values))});
  }
  if (count != values.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("product at a mask: there is space for {} values; the masks have {}",
                            values.size(), count));
  std::size_t first = 0;
  for (std::size_t g = 0; g < masks.size(); ++g) {
    const sparse::Csr<float>& mask = masks[g];
    const std::span<float> out = values.subspan(first, mask.values.size());
    first += mask.values.size();
    const CompressedRows<T, std::int32_t, std::int64_t> pattern{.rows = mask.rows,
                                                                .cols = mask.cols,
                                                                .block = mask.block,
                                                                .row_begin = mask.row_begin,
                                                                .col = mask.col,
                                                                .values = {}};
    sddmm<T>(pattern, operand_of_group("a", a, g, masks.size(), transpose_lhs),
             operand_of_group("b", b, g, masks.size(), transpose_rhs), out, executor);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (mask.values[i] == 0) out[i] = 0;
  }
}

template void mask_product(std::span<const sparse::Csr<float>>, bool, bool, MatrixView<const float>,
                           MatrixView<const float>, std::span<float>, Executor&);
template void mask_product(std::span<const sparse::Csr<float>>, bool, bool, MatrixView<const Half>,
                           MatrixView<const Half>, std::span<float>, Executor&);
template void mask_product(std::span<const sparse::Csr<float>>, bool, bool,
                           MatrixView<const BFloat16>, MatrixView<const BFloat16>, std::span<float>,
                           Executor&);

}  // namespace tessera::host
