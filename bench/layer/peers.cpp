#include "tessera/bench/layer/peers.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/layer/comparisons.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/host/layer.hpp"
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

// A layer and the thread that it runs on.
struct OwnLayer {
  explicit OwnLayer(const PeerProblem& p)
      : layer({.size = {1, p.layer.x, p.layer.y, p.layer.z},
               .block = p.layer.shape(),
               .density = p.layer.density,
               .data_type = DataType::Float},
              p.layer.cpu, *executor) {
    layer.set_weights(p.weights);
  }

  std::unique_ptr<Executor> executor = make_executor(1);
  host::HostLayer layer;
};

// The columns that are compared. They are an odd number apart, so they reach every panel and every
// lane of a vector.
MatrixView<const float> some_columns(MatrixView<const float> m) {
  const std::int64_t step = m.cols / 32 | 1;
  return {m.data, m.rows, (m.cols + step - 1) / step, m.row_stride, step};
}

void require_right(const Peer& peer, const PeerProblem& problem, const Product& product,
                   Matrix<float>& q) {
  // The result is cleared, so that an earlier product cannot be taken for this one.
  std::fill(q.elements().begin(), q.elements().end(), std::numeric_limits<float>::quiet_NaN());
  product(q);
  const verify::Verdict verdict = verify::verify_product<float>(
      problem.weights, some_columns(problem.s.view()), some_columns(std::as_const(q).view()), {});
  if (!verdict.ok())
    throw std::runtime_error(problem.layer.name() + ": " + peer.name + " gives a wrong result, " +
                             to_string(verdict));
}

}  // namespace

std::vector<double> medians_in_turns(const std::vector<std::function<void()>>& bodies) {
  constexpr std::size_t kRounds = 9;
  constexpr double kLeastSeconds = 0.5;
  std::vector<std::vector<double>> times(bodies.size());
  double sum = 0;
  while (times[0].size() < kRounds || sum < kLeastSeconds)
    for (std::size_t b = 0; b < bodies.size(); ++b) {
      bodies[b]();
      times[b].push_back(seconds(bodies[b], Clock::OwnThread));
      sum += times[b].back();
    }
  std::vector<double> medians;
  for (auto& t : times) {
    std::nth_element(t.begin(), t.begin() + std::ssize(t) / 2, t.end());
    medians.push_back(t[t.size() / 2]);
  }
  return medians;
}

PeerProblem::PeerProblem(const LayerCase& c)
    : layer(c),
      weights(sparse::random_pattern(c.x, c.y, c.shape(), c.density, /*seed=*/7)),
      elements(sparse::with_block(weights, {1, 1})),
      s(random_matrix<float>(c.y, c.z, 1)) {}

Product make_own(const PeerProblem& problem) {
  const auto own = std::make_shared<OwnLayer>(problem);
  return
      [own, &problem](Matrix<float>& q) { own->layer.forward<float>(problem.s.view(), q.view()); };
}

Product make_own_call(const PeerProblem& problem) {
  const std::shared_ptr<Executor> executor = sequential();
  return [executor, &problem](Matrix<float>& q) {
    const sparse::Csr<float>& w = problem.weights;
    const host::CompressedRows<float, std::int32_t, std::int64_t> a{w.rows,      w.cols, w.block,
                                                                    w.row_begin, w.col,  w.values};
    host::spmm<float>(a, problem.s.view(), q.view(), *executor);
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
  };
  return list;
}

std::vector<PeerRate> peer_rates(const LayerCase& c) {
  const PeerProblem problem(c);
  Matrix<float> q(c.x, c.z);
  std::vector<PeerRate> rates;
  std::vector<std::function<void()>> bodies;
  for (const Peer& peer : peers()) {
    const Product product = peer.make != nullptr ? peer.make(problem) : Product();
    if (!product) continue;
    require_right(peer, problem, product, q);
    rates.push_back({peer.name});
    bodies.push_back([product, &q] { product(q); });
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
