#include "tessera/tools/sparse_fc_layer/operands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/file.hpp"

namespace tessera::tools {

std::int64_t batch_of(const Arguments& a, const Weights& weights) {
  if (a.input.empty()) return a.batch_size;
  const io::Array file = io::read_npy(read_file(a.input), a.input);
  if (file.shape.size() == 2 && file.shape[0] == weights.cols && file.shape[1] > 0 &&
      file.type != io::ElementType::Text)
    return file.shape[1];
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: S has the shape ({}); this layer needs ({}, batch)", a.input,
                          fmt::join(file.shape, ", "), weights.cols));
}

}  // namespace tessera::tools
