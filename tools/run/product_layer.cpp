#include "tessera/tools/run/product_layer.hpp"

namespace tessera::tools {

MatMulProblem product_of(const MatMulProblem& asked, const Problem& layer) {
  MatMulProblem product = asked;
  const bool left = asked.side == SparseSide::Left;
  product.groups = layer.size.g;
  product.m = left ? layer.size.x : layer.size.z;
  product.k = layer.size.y;
  product.n = left ? layer.size.z : layer.size.x;
  product.block = stores_transposed_weights(asked) ? layer.block.transposed() : layer.block;
  product.density = layer.density;
  product.data_type = layer.data_type;
  product.partials_type = layer.partials_type;
  return product;
}

}  // namespace tessera::tools
