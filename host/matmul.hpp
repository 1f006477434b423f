#pragma once

#include <span>

#include "tessera/base/matmul.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host {

// The product of a sparse and a dense matrix (MatMulProblem) on this computer, for a pattern that
// is used many times: it is encoded, as the weights of a layer, whose Fwd is the product.
// host::spmm multiplies a matrix once, where the caller keeps it. Operands and errors are those of
// runtime::MatMul; an operand in another order than the layer's is put in order as it is copied
// into panels, or before it if there are several groups. One thread at a time may use a product.
class MatMul {
 public:
  // Throws the errors of check_matmul and HostLayer. The executor must outlive the product.
  MatMul(const MatMulProblem& problem, const HostCpu& cpu, Executor& executor,
         const HostOptions& options = {});

  // Takes the sparse operand of each group as it is stored and encodes it. Throws the errors of
  // sparse::matmul_weights.
  void set_sparse(std::span<const sparse::Csr<float>> operands);

  // Does the same for a product of one group.
  void set_sparse(const sparse::Csr<float>& operand);

  // Writes the product. Returns the measured times, those of putting operands in order included.
  template <class T>
  HostTimes multiply(MatrixView<const T> dense, MatrixView<T> result);

  const MatMulProblem& problem() const { return problem_; }

  // Returns the layer, for its cells and figures. Weights that are set there must be R.
  HostLayer& layer() { return layer_; }
  const HostLayer& layer() const { return layer_; }

 private:
  MatMulProblem problem_;
  HostLayer layer_;
};

}  // namespace tessera::host
