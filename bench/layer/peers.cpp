#include "tessera/bench/layer/peers.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/layer/comparisons.hpp"
#include "tessera/bench/layer/own_pass.hpp"
#include "tessera/bench/model/plain_product.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::bench {
namespace {

#ifdef TESSERA_HAS_EIGEN
constexpr MakeProduct kEigen = make_eigen;
#else
constexpr MakeProduct kEigen = nullptr;
#endif
#ifdef TESSERA_HAS_OPENBLAS
constexpr MakeProduct kOpenBlas = make_open_blas;
#else
constexpr MakeProduct kOpenBlas = nullptr;
#endif
#ifdef TESSERA_HAS_LIBRSB
constexpr MakeProduct kLibrsb = make_librsb;
#else
constexpr MakeProduct kLibrsb = nullptr;
#endif
#ifdef TESSERA_HAS_LIBXSMM
constexpr MakeProduct kSpmdm = make_libxsmm_spmdm;
constexpr MakeProduct kBlocks = make_libxsmm_blocks, kPanels = make_libxsmm_panels;
#else
constexpr MakeProduct kSpmdm = nullptr, kBlocks = nullptr, kPanels = nullptr;
#endif

constexpr const char* kOpenBlasName = "OpenBLAS";

// The loop over rows, blocks and columns that a user would write, compiled for this computer.
Product make_plain_loop(const PeerProblem& problem) {
  const bool is_whole =
      problem.weights.rows == problem.layer.x && problem.weights.cols == problem.layer.y;
  if (problem.batch_first || !is_whole) return {};  // it knows no blocks beyond the operands
  return [&problem](Matrix<float>& q) {
    plain_product_native(problem.weights, problem.s.view(), q.view());
  };
}

void require_right(const Peer& peer, const PeerProblem& problem, const Product& product,
                   Matrix<float>& q) {
  // The result is cleared, so that an earlier product cannot be taken for this one.
  std::fill(q.elements().begin(), q.elements().end(), std::numeric_limits<float>::quiet_NaN());
  product(q);
  const verify::Verdict verdict =
      verify::verify_product<float>(problem.weights, some_columns(problem.operand()),
                                    some_columns<const float>(problem.result(q)), {});
  if (!verdict.ok())
    throw std::runtime_error(problem.layer.name() + ": " + peer.name + " gives a wrong result, " +
                             to_string(verdict));
}

}  // namespace

#ifndef TESSERA_HAS_EIGEN
std::function<void()> eigen_gradient(const sparse::Csr<float>&, MatrixView<const float>,
                                     MatrixView<const float>, std::span<float>) {
  return {};
}
#endif

#ifndef TESSERA_HAS_OPENBLAS
std::string open_blas_kernels() { return "none"; }
#endif

std::vector<double> medians_in_turns(const std::vector<std::function<void()>>& bodies,
                                     double least_seconds) {
  constexpr std::size_t kRounds = 9;
  constexpr double kLongEnough = 1e-3;  // seconds; a virtual machine reads the clock in up to 2 us
  std::vector<std::vector<double>> times(bodies.size());
  std::vector<int> repeats;
  for (const auto& body : bodies) {
    body();
    const double once = std::max(seconds(body, Clock::OwnThread), 1e-7);
    repeats.push_back(static_cast<int>(std::max(kLongEnough / once, 1.0)));
  }
  double sum = 0;
  while (times[0].size() < kRounds || sum < least_seconds)
    for (std::size_t b = 0; b < bodies.size(); ++b) {
      const auto repeat = [&] {
        for (int i = 0; i < repeats[b]; ++i) bodies[b]();
      };
      repeat();
      const double all = seconds(repeat, Clock::OwnThread);
      times[b].push_back(all / repeats[b]);
      sum += all;
    }
  std::vector<double> medians;
  for (auto& t : times) {
    std::nth_element(t.begin(), t.begin() + std::ssize(t) / 2, t.end());
    medians.push_back(t[t.size() / 2]);
  }
  return medians;
}

PeerProblem::PeerProblem(const LayerCase& c)
    : PeerProblem(c, sparse::random_pattern(c.x, c.y, c.shape(), c.density, /*seed=*/7)) {}

PeerProblem::PeerProblem(const LayerCase& c, sparse::Csr<float> pattern, bool is_batch_first)
    : layer(c),
      weights(std::move(pattern)),
      elements(sparse::with_block(weights, {1, 1})),
      batch_first(is_batch_first),
      s(random_matrix<float>(batch_first ? c.z : c.y, batch_first ? c.y : c.z, 1)) {}

MatrixView<const float> PeerProblem::operand() const { return in_order(s, batch_first); }

MatrixView<float> PeerProblem::result(Matrix<float>& q) const { return in_order(q, batch_first); }

Product make_own(const PeerProblem& problem) {
  const auto own = std::make_shared<OwnLayer>(problem.layer, problem.weights);
  return [own, &problem](Matrix<float>& q) {
    own->layer.forward<float>(problem.operand(), problem.result(q));
  };
}

Product make_own_call(const PeerProblem& problem) {
  const std::shared_ptr<Executor> executor = sequential();
  return [executor, &problem](Matrix<float>& q) {
    const sparse::Csr<float>& w = problem.weights;
    const host::CompressedRows<float, std::int32_t, std::int64_t> a{w.rows,      w.cols, w.block,
                                                                    w.row_begin, w.col,  w.values};
    host::spmm<float>(a, problem.operand(), problem.result(q), *executor);
  };
}

const std::vector<Peer>& peers() {
  static const std::vector<Peer> list = {
      {"own", make_own},
      {"own, without a layer", make_own_call},
      {"Eigen", kEigen},
      {kOpenBlasName, kOpenBlas},
      {"librsb", kLibrsb},
      {"libxsmm spmdm", kSpmdm},
      {"libxsmm batch-reduce", kBlocks},
      {"libxsmm, S in panels", kPanels},
      {"plain loop", make_plain_loop},
      {"MKL", make_mkl},
  };
  return list;
}

std::vector<NamedProduct> right_products(const std::vector<Peer>& list, const PeerProblem& problem,
                                         Matrix<float>& q) {
  std::vector<NamedProduct> products;
  for (const Peer& peer : list) {
    const Product product = peer.make != nullptr ? peer.make(problem) : Product();
    if (!product) continue;
    require_right(peer, problem, product, q);
    products.push_back({peer.name, [product, &q] { product(q); }});
  }
  return products;
}

std::vector<PeerRate> peer_rates(const LayerCase& c) {
  const PeerProblem problem(c);
  Matrix<float> q(c.x, c.z);
  std::vector<PeerRate> rates;
  std::vector<std::function<void()>> bodies;
  for (const NamedProduct& product : right_products(peers(), problem, q)) {
    rates.push_back({product.name});
    bodies.push_back(product.run);
  }
  const std::vector<double> times = medians_in_turns(bodies);
  const double flops = 2.0 * double(problem.elements.values.size()) * double(c.z);
  const double peak = host::measure_float_peak().fused;
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i].of_peak = flops / times[i] / peak;
  return rates;
}

std::optional<double> open_blas_seconds(const LayerCase& c) {
  const auto peer = std::find_if(peers().begin(), peers().end(),
                                 [](const Peer& p) { return p.name == kOpenBlasName; });
  if (peer->make == nullptr) return std::nullopt;
  const PeerProblem problem(c);
  const Product product = peer->make(problem);
  Matrix<float> q(c.x, c.z);
  require_right(*peer, problem, product, q);
  return time_of(1, 9, [&] { product(q); }).median;
}

}  // namespace tessera::bench
