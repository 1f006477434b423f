#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/bench/layer/layer_case.hpp"
#include "tessera/bench/layer/peers.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// The forward product of one case in Half or BFloat16. All values are numbers of T.
template <class T>
struct Peer16Problem {
  explicit Peer16Problem(const LayerCase& c);

  LayerCase layer;
  sparse::Csr<float> weights;   // [x][y] in the case's blocks, a uniform pattern
  sparse::Csr<float> elements;  // the same matrix in blocks of 1 x 1
  std::vector<T> values;        // those of weights
  Matrix<T> s;                  // [y][z]
};

// A library that was prepared for a problem, which must outlive it.
struct Product16 {
  std::string name;
  std::function<void()> run;  // on the calling thread
  std::function<float(std::int64_t x, std::int64_t z)> result;
  double largest_error = 0.02;  // of a result, by the largest result
};

// Each returns the products that a library has for this case and type. Eigen sums in 16 bits, one
// number at a time, so it takes part only in cases of few multiplications and may err more.
std::vector<Product16> eigen_products(const Peer16Problem<Half>& problem);
std::vector<Product16> eigen_products(const Peer16Problem<BFloat16>& problem);
std::vector<Product16> libxsmm_products(const Peer16Problem<BFloat16>& problem);
std::vector<Product16> onednn_products(const Peer16Problem<BFloat16>& problem);

// Does what peer_rates() does for a case in half or bfloat16.
std::vector<PeerRate> peer_rates_16bit(const LayerCase& c);

}  // namespace tessera::bench
