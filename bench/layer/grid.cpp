#include "tessera/bench/layer/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tessera/bench/layer/own_pass.hpp"
#include "tessera/bench/layer/peers.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::bench {
namespace {

constexpr double kCaseSeconds = 0.25;  // of timed runs

using Body = std::function<void()>;

// The products that run in turns for a case, with their names.
struct Bodies {
  std::vector<std::string> names;
  std::vector<Body> run;
  std::vector<std::shared_ptr<void>> kept;  // what they refer to

  void add(std::string name, Body body) {
    names.push_back(std::move(name));
    run.push_back(std::move(body));
  }
  template <class T, class... Args>
  T& keep(Args&&... args) {
    auto made = std::make_shared<T>(std::forward<Args>(args)...);
    kept.push_back(made);
    return *made;
  }
};

constexpr const char *kLayer = "layer", *kCall = "call", *kFloatLayer = "float layer";

template <class T>
OwnPass<T>& add_own(Bodies& bodies, const char* name, const GridCase& c,
                    const sparse::Csr<float>& weights) {
  auto& own = bodies.keep<OwnPass<T>>(c.layer, weights, c.batch_first);
  bodies.add(name, [&own] { own.run(); });
  return own;
}

// GradA is the product of the transpose, which other libraries store as the layer does.
void add_products(Bodies& bodies, const GridCase& c, const sparse::Csr<float>& weights) {
  const bool is_forward = c.layer.pass == Pass::Fwd;
  LayerCase product = c.layer;
  product.pass = Pass::Fwd;
  if (!is_forward) {
    std::swap(product.x, product.y);
    const BlockShape turned = c.layer.shape().transposed();
    product.block = turned.rows, product.block_columns = turned.cols;
  }
  auto& problem = bodies.keep<PeerProblem>(
      product, is_forward ? weights : sparse::transpose(weights), c.batch_first);
  auto& q = bodies.keep<Matrix<float>>(c.batch_first ? product.z : product.x,
                                       c.batch_first ? product.x : product.z);
  for (const NamedProduct& p : right_products(peers(), problem, q)) {
    if (p.name == "own") continue;
    if (!p.name.starts_with("own"))
      bodies.add(p.name, p.run);
    else if (is_forward)
      bodies.add(kCall, p.run);
  }
}

void add_gradient(Bodies& bodies, const OwnPass<float>& own, const sparse::Csr<float>& weights) {
  const MatrixView<const float> q = own.q(), s = own.s();
  auto& elements = bodies.keep<sparse::Csr<float>>(sparse::with_block(weights, {1, 1}));
  auto& gradients = bodies.keep<std::vector<float>>(elements.values.size());
  if (const auto run = eigen_gradient(elements, q, s, gradients)) bodies.add("Eigen", run);
}

Bodies bodies_of(const GridCase& c, const sparse::Csr<float>& weights) {
  Bodies bodies;
  with_type(parse_data_type(c.layer.type), [&]<class T>(T) {
    OwnPass<T>& own = add_own<T>(bodies, kLayer, c, weights);
    if constexpr (!std::is_same_v<T, float>) {
      GridCase in_float = c;
      in_float.layer.type = "float";
      add_own<float>(bodies, kFloatLayer, in_float, weights);
    } else if (c.layer.pass == Pass::GradW) {
      add_gradient(bodies, own, weights);
    } else {
      add_products(bodies, c, weights);
    }
  });
  return bodies;
}

}  // namespace

GridResult run_grid_case(const GridCase& c) {
  const sparse::Csr<float> weights = grid_weights(c);
  const Bodies bodies = bodies_of(c, weights);
  const std::vector<double> times = medians_in_turns(bodies.run, kCaseSeconds);
  GridResult result{.grid_case = c};
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::string& name = bodies.names[i];
    if (name == kLayer)
      result.layer = times[i];
    else if (name == kCall)
      result.call = times[i];
    else
      result.others.push_back({name, times[i], name == "OpenBLAS"});
  }
  static const double peak = host::measure_float_peak().fused;
  result.peak = peak;
  result.flops = 2 * double(weights.values.size()) * double(c.layer.z);
  return result;
}

GridResult::Other GridResult::best_sparse(bool with_mkl) const {
  Other best{{}, std::numeric_limits<double>::infinity()};
  for (const Other& other : others)
    if (!other.is_dense && (with_mkl || other.name != "MKL") && other.seconds < best.seconds)
      best = other;
  return best;
}

}  // namespace tessera::bench
