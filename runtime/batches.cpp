#include "tessera/runtime/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::runtime {

std::vector<Range> batch_parts(std::int64_t batch, std::int64_t of_one_run) {
  std::vector<Range> parts;
  for (std::int64_t z = 0; z < batch; z += of_one_run)
    parts.push_back({z, std::min(z + of_one_run, batch)});
  return parts;
}

template <class T>
device::Ledger forward_batch(TileLayer& layer, MatrixView<const T> s, MatrixView<T> q) {
  if (s.cols != q.cols)
    throw_invalid(fmt::format(
        "the operands have {} and {} columns; all operands of a batch must have the same number",
        s.cols, q.cols));
  const std::int64_t width = layer.facts().problem.size.z;
  device::Ledger all;
  for (const Range part : batch_parts(s.cols, width)) {
    const Matrix<T> in = batch_columns(s, part, width);
    Matrix<T> out(q.rows, width);
    device::Ledger run = layer.forward<T>(in.view(), out.view());
    std::move(run.steps.begin(), run.steps.end(), std::back_inserter(all.steps));
    put_columns(out, part, q);
  }
  return all;
}

template device::Ledger forward_batch(TileLayer&, MatrixView<const float>, MatrixView<float>);
template device::Ledger forward_batch(TileLayer&, MatrixView<const Half>, MatrixView<Half>);
template device::Ledger forward_batch(TileLayer&, MatrixView<const BFloat16>, MatrixView<BFloat16>);

}  // namespace tessera::runtime
