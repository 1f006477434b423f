#include <omp.h>

#include <dnnl.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/bench/layer/peers_16bit.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::bench {

namespace {

using Memory = dnnl::memory;
constexpr auto kType = Memory::data_type::bf16;
constexpr auto kRows = Memory::format_tag::ab;

// The library's objects refer to the engine, which must outlive them.
struct DenseProduct {
  explicit DenseProduct(const Peer16Problem<BFloat16>& p)
      : q(p.layer.x, p.layer.z),
        product(dnnl::matmul::desc({{p.layer.x, p.layer.y}, kType, Memory::format_tag::any},
                                   {{p.layer.y, p.layer.z}, kType, kRows},
                                   {{p.layer.x, p.layer.z}, kType, kRows}),
                engine),
        matmul(product),
        r(product.src_desc(), engine),
        s(product.weights_desc(), engine, const_cast<BFloat16*>(p.s.elements().data())),
        result(product.dst_desc(), engine, q.elements().data()) {
    std::vector<BFloat16> dense;
    const Matrix<float> floats = sparse::to_dense(p.weights);
    for (const float value : floats.elements()) dense.push_back(BFloat16(value));
    Memory from({{p.layer.x, p.layer.y}, kType, kRows}, engine, dense.data());
    dnnl::reorder(from, r).execute(stream, from, r);
    stream.wait();
  }
  void run() {
    matmul.execute(stream, {{DNNL_ARG_SRC, r}, {DNNL_ARG_WEIGHTS, s}, {DNNL_ARG_DST, result}});
    stream.wait();
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Matrix<BFloat16> q;
  dnnl::matmul::primitive_desc product;
  dnnl::matmul matmul;
  Memory r, s, result;
};

}  // namespace

// Version 2.6 of oneDNN has no sparse product (version 3 has one for compressed rows), so this is
// the dense one with the zeros of R, whose values it may bring into an order of its own beforehand.
std::vector<Product16> onednn_products(const Peer16Problem<BFloat16>& problem) {
  omp_set_num_threads(1);
  const auto dense = std::make_shared<DenseProduct>(problem);
  return {{"oneDNN, dense", [dense] { dense->run(); },
           [dense](std::int64_t x, std::int64_t z) { return float(dense->q(x, z)); }}};
}

}  // namespace tessera::bench
