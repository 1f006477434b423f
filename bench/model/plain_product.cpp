#include "tessera/bench/model/plain_product.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace tessera::bench {

void plain_product(const sparse::Csr<float>& weights, MatrixView<const float> s,
                   MatrixView<float> q) {
#include "tessera/bench/model/plain_product.inl"
}

}  // namespace tessera::bench
