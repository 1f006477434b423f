#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/bench/layer/layer_case.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// The forward product of one case in float, with the operands that every library receives.
struct PeerProblem {
  explicit PeerProblem(const LayerCase& c);  // of a uniform pattern
  PeerProblem(const LayerCase& c, sparse::Csr<float> pattern, bool is_batch_first = false);

  MatrixView<const float> operand() const;           // [y][z], of any order
  MatrixView<float> result(Matrix<float>& q) const;  // [x][z], of any order

  LayerCase layer;
  sparse::Csr<float> weights;   // [x][y] in the case's blocks
  sparse::Csr<float> elements;  // the same matrix in blocks of 1 x 1
  bool batch_first = false;     // true: rows of `s` and of results are samples
  Matrix<float> s;              // [y][z], or [z][y] with the batch first
};

// Writes all of q on the calling thread: [x][z], or [z][x] with the batch first.
using Product = std::function<void(Matrix<float>& q)>;

// Prepares a library for a problem, which must outlive the product. The product is empty if the
// library does not support this case, or was not found when the benchmark ran.
using MakeProduct = Product (*)(const PeerProblem&);

// Our layer, our product without a layer, and then other libraries. Each has a source of its own,
// which is compiled if CMake found the library.
Product make_own(const PeerProblem& problem);
Product make_own_call(const PeerProblem& problem);
Product make_eigen(const PeerProblem& problem);
Product make_mkl(const PeerProblem& problem);
Product make_open_blas(const PeerProblem& problem);
Product make_librsb(const PeerProblem& problem);
Product make_libxsmm_spmdm(const PeerProblem& problem);
Product make_libxsmm_blocks(const PeerProblem& problem);
Product make_libxsmm_panels(const PeerProblem& problem);

// Returns the gradient of the weights as a plain loop over the stored elements computes it with
// Eigen's dot product, in their order; none if Eigen was not found.
std::function<void()> eigen_gradient(const sparse::Csr<float>& elements,
                                     MatrixView<const float> q_grad, MatrixView<const float> s,
                                     std::span<float> gradients);

// Returns the processor whose kernels OpenBLAS uses, which OPENBLAS_CORETYPE chooses, or "none"
// without OpenBLAS.
std::string open_blas_kernels();

struct Peer {
  std::string name;
  MakeProduct make = nullptr;  // none: the library was not found when this was built
};
// The first entry is our layer.
const std::vector<Peer>& peers();

struct PeerRate {
  std::string name;
  double of_peak = 0;  // useful flops, by the float peak measured beside them
};
// Runs every peer that supports the case on one thread, our layer first. They run in turns, so that
// other programs disturb them alike. Results are compared with double precision before anything is
// timed; a wrong one throws std::runtime_error.
std::vector<PeerRate> peer_rates(const LayerCase& c);

// Returns the products of `list` that support the problem, each compared with double precision; a
// wrong one throws std::runtime_error. They write `q` and refer to it and to the problem.
struct NamedProduct {
  std::string name;
  std::function<void()> run;
};
std::vector<NamedProduct> right_products(const std::vector<Peer>& list, const PeerProblem& problem,
                                         Matrix<float>& q);

// Returns the median times of bodies that run in turns, nine times at least and together for so
// many seconds. A body runs for a millisecond, or once, for each time, and as long untimed before
// it, because the others have replaced its data in the caches: 2 MB of operands are at their rate
// after some runs only.
std::vector<double> medians_in_turns(const std::vector<std::function<void()>>& bodies,
                                     double least_seconds = 0.5);

}  // namespace tessera::bench
