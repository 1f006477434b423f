#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/bench/layer/layer_case.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Fwd of one case on float, as every library gets it.
struct PeerProblem {
  explicit PeerProblem(const LayerCase& c);

  LayerCase layer;
  sparse::Csr<float> weights;   // [x][y] in the case's blocks, a uniform pattern
  sparse::Csr<float> elements;  // the same matrix in blocks of 1 x 1
  Matrix<float> s;              // [y][z]
};

// Writes q [x][z], all of it, on the calling thread.
using Product = std::function<void(Matrix<float>& q)>;

// Sets a library up for a problem, which must outlive the product. An empty product: the library
// does not do this case.
using MakeProduct = Product (*)(const PeerProblem&);

// Our layer; then libraries, each in a source of its own, compiled where CMake found the library.
Product make_own(const PeerProblem& problem);
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
// Our layer is the first.
const std::vector<Peer>& peers();

struct PeerRate {
  std::string name;
  double of_peak = 0;  // useful flops, by the float peak measured beside them
};
// Every peer that does the case, our layer first, one thread. They take turns, so that neighbours
// disturb them alike. Results are compared with double precision before anything is timed: a wrong
// one is std::runtime_error.
std::vector<PeerRate> peer_rates(const LayerCase& c);

}  // namespace tessera::bench
