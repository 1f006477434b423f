#include "tessera/bench/spmm/orders.hpp"

#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/prepared.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {

template <class T>
OrderTimes measure_orders(std::int64_t side, std::int64_t block, double density, std::int64_t z,
                          int repeats) {
  const sparse::Csr<float> m = sparse::random_pattern(side, side, {block, block}, density, 1);
  std::vector<T> values(m.values.size());
  Random random(3);
  for (T& value : values) value = T(float(2 * random.unit() - 1));
  const host::CompressedRows<T, std::int32_t, std::int64_t> a{side,        side,  m.block,
                                                              m.row_begin, m.col, values};
  const Matrix<T> s = random_matrix<T>(side, z, 2);
  Matrix<T> s_batch(z, side), q(side, z), q_batch(z, side);
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t b = 0; b < z; ++b) s_batch(b, y) = s(y, b);
  const auto one = sequential();
  const host::Prepared<T> prepared(a, *one, {.batch = z});
  const auto in_batch = std::as_const(s_batch).view().transposed();
  const auto out_batch = q_batch.view().transposed();
  const std::vector<std::function<void()>> bodies = {
      [&] { host::spmm<T>(a, s.view(), q.view(), *one); },
      [&] { host::spmm<T>(a, in_batch, out_batch, *one); },
      [&] { prepared.spmm(s.view(), q.view(), *one); },
      [&] { prepared.spmm(in_batch, out_batch, *one); }};
  for (const std::size_t i : {0, 2}) {
    bodies[i]();
    bodies[i + 1]();
    for (std::int64_t x = 0; x < side; ++x)
      for (std::int64_t b = 0; b < z; ++b)
        if (q(x, b).bits != q_batch(b, x).bits)
          throw std::runtime_error(
              fmt::format("the orders of the operands of {} x {} differ", side, side));
  }
  const std::vector<double> times = medians(bodies, repeats);
  return {times[0], times[1], times[2], times[3]};
}

template OrderTimes measure_orders<Half>(std::int64_t, std::int64_t, double, std::int64_t, int);
template OrderTimes measure_orders<BFloat16>(std::int64_t, std::int64_t, double, std::int64_t, int);

}  // namespace tessera::bench
