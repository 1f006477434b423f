#include "tessera/arrays/internal/elements.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::arrays::internal {

void require_element_block(BlockShape block) {
  if (block.is_element()) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("the matrix has blocks of {} x {}; convert it with with_block(matrix, "
                          "{{1, 1}}) first",
                          block.rows, block.cols));
}

}  // namespace tessera::arrays::internal
