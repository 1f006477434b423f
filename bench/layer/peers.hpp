#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/bench/layer/layer_case.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// The forward product of one case in float, with the operands that every library receives.
struct PeerProblem {
  explicit PeerProblem(const LayerCase& c);

  LayerCase layer;
  sparse::Csr<float> weights;   // [x][y] in the case's blocks, a uniform pattern
  sparse::Csr<float> elements;  // the same matrix in blocks of 1 x 1
  Matrix<float> s;              // [y][z]
};

// Writes all of q [x][z] on the calling thread.
using Product = std::function<void(Matrix<float>& q)>;

// Prepares a library for a problem, which must outlive the product. The product is empty if the
// library does not support this case.
using MakeProduct = Product (*)(const PeerProblem&);

// Our layer, our product without a layer, and then other libraries. Each has a source of its own,
// which is compiled if CMake found the library.
Product make_own(const PeerProblem& problem);
Product make_own_call(const PeerProblem& problem);
Product make_eigen(const PeerProblem& problem);
Product make_open_blas(const PeerProblem& problem);
Product make_librsb(const PeerProblem& problem);
Product make_libxsmm_spmdm(const PeerProblem& problem);
Product make_libxsmm_blocks(const PeerProblem& problem);
Product make_libxsmm_panels(const PeerProblem& problem);

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

// Returns the median times of bodies that run in turns. Each body runs once untimed first, because
// the others have replaced its data in the caches.
std::vector<double> medians_in_turns(const std::vector<std::function<void()>>& bodies);

}  // namespace tessera::bench
