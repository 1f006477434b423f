#include "tessera/bench/layer/peers_16bit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

template <class T>
sparse::Csr<float> rounded(sparse::Csr<float> matrix) {
  for (float& value : matrix.values) value = float(T(value));
  return matrix;
}

template <class T>
Product16 own_layer(const Peer16Problem<T>& p) {
  const std::shared_ptr<Executor> executor = sequential();
  const auto layer =
      std::make_shared<host::HostLayer>(Problem{.size = {1, p.layer.x, p.layer.y, p.layer.z},
                                                .block = p.layer.shape(),
                                                .density = p.layer.density,
                                                .data_type = data_type_of<T>()},
                                        p.layer.cpu, *executor);
  layer->set_weights(p.weights);
  const auto q = std::make_shared<Matrix<T>>(p.layer.x, p.layer.z);
  return {"own",
          [executor, layer, q, &s = p.s] { layer->template forward<T>(s.view(), q->view()); },
          [q](std::int64_t x, std::int64_t z) { return float((*q)(x, z)); }};
}

template <class T>
Product16 own_call(const Peer16Problem<T>& p) {
  const std::shared_ptr<Executor> executor = sequential();
  const auto q = std::make_shared<Matrix<T>>(p.layer.x, p.layer.z);
  return {"own, without a layer",
          [executor, q, &p] {
            const sparse::Csr<float>& w = p.weights;
            const host::CompressedRows<T, std::int32_t, std::int64_t> a{
                w.rows, w.cols, w.block, w.row_begin, w.col, p.values};
            host::spmm<T>(a, p.s.view(), q->view(), *executor);
          },
          [q](std::int64_t x, std::int64_t z) { return float((*q)(x, z)); }};
}

template <class T>
std::vector<Product16> products_of(const Peer16Problem<T>& problem) {
  std::vector<Product16> all;
  all.push_back(own_layer(problem));
  all.push_back(own_call(problem));
  [[maybe_unused]] const auto add = [&](std::vector<Product16> more) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  };
#ifdef TESSERA_HAS_EIGEN
  add(eigen_products(problem));
#endif
  if constexpr (std::is_same_v<T, BFloat16>) {
#ifdef TESSERA_HAS_LIBXSMM
    add(libxsmm_products(problem));
#endif
#ifdef TESSERA_HAS_ONEDNN
    add(onednn_products(problem));
#endif
  }
  return all;
}

// Some rows of the product in double precision, in some columns.
template <class T>
void require_right(const Peer16Problem<T>& p, const Product16& product) {
  constexpr std::int64_t kSome = 16;
  const std::int64_t x_step = p.layer.x / kSome | 1, z_step = p.layer.z / kSome | 1;
  double largest = 0, worst = 0;
  for (std::int64_t x = 0; x < p.layer.x; x += x_step)
    for (std::int64_t z = 0; z < p.layer.z; z += z_step) {
      double sum = 0;
      for (auto i = p.elements.row_begin[std::size_t(x)];
           i < p.elements.row_begin[std::size_t(x) + 1]; ++i)
        sum += double(p.elements.values[std::size_t(i)]) *
               float(p.s(p.elements.col[std::size_t(i)], z));
      largest = std::max(largest, std::abs(sum));
      worst = std::max(worst, std::abs(sum - double(product.result(x, z))));
    }
  // Written so that a NaN is wrong.
  if (!(worst <= product.largest_error * largest))
    throw std::runtime_error(p.layer.name() + ": " + product.name + " gives a wrong result");
}

template <class T>
std::vector<PeerRate> rates_as(const LayerCase& c) {
  const Peer16Problem<T> problem(c);
  std::vector<PeerRate> rates;
  std::vector<std::function<void()>> bodies;
  for (const Product16& product : products_of(problem)) {
    product.run();
    require_right(problem, product);
    rates.push_back({product.name});
    bodies.push_back(product.run);
  }
  const std::vector<double> times = medians_in_turns(bodies);
  const double flops = 2.0 * double(problem.elements.values.size()) * double(c.z);
  const double peak = host::measure_float_peak().fused;
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i].of_peak = flops / times[i] / peak;
  return rates;
}

}  // namespace

template <class T>
Peer16Problem<T>::Peer16Problem(const LayerCase& c)
    : layer(c),
      weights(rounded<T>(sparse::random_pattern(c.x, c.y, c.shape(), c.density, /*seed=*/7))),
      elements(sparse::with_block(weights, {1, 1})),
      values(weights.values.size()),
      s(random_matrix<T>(c.y, c.z, 1)) {
  std::ranges::transform(weights.values, values.begin(), [](float value) { return T(value); });
}

template struct Peer16Problem<Half>;
template struct Peer16Problem<BFloat16>;

std::vector<PeerRate> peer_rates_16bit(const LayerCase& c) {
  return parse_data_type(c.type) == DataType::Half ? rates_as<Half>(c) : rates_as<BFloat16>(c);
}

}  // namespace tessera::bench
