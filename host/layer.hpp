#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/host/times.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::host {

// Is R multiplied with its zeros?
enum class DenseChoice {
  Never,
  Always,
  Auto  // for each pass, where the forecast (host_cost.hpp) says that it is faster
};

// How a layer runs on this computer; its results are right in every case.
struct HostOptions {
  DenseChoice dense = DenseChoice::Never;
  bool own_dense_kernel = false;   // even where a library was built in: to compare them
  std::optional<HostRates> rates;  // for Auto; none: default_host_rates()
};

// A sparse fully connected layer on this computer, as fast as it can: the buckets, words and
// kernels of the modelled machines, with cells that suit the caches (host_cells.hpp).
//
//   Q[g][x][z] = R[g][x][y] * S[g][y][z],   dS = transpose(R) * dQ,   dR = dQ * transpose(S) where
//   R is
//
// Operands as FullyConnected has them: groups one below the other, strided views, T float for
// DataType::Float, Half or BFloat16 for the types named so, sums in float. An operand of another
// shape or type, a pass that was not planned and a call before the first set_weights are
// Error{InvalidArgument}. Results have the same bits for any number of threads, but Auto may choose
// otherwise for another. Passes allocate nothing but in the first call after set_weights, and what
// a dense library does. One thread at a time per layer. Example: layer.set_weights(weights);
// layer.forward<float>(s.view(), q.view()).
class HostLayer {
 public:
  // Error{InvalidArgument} for a problem that cannot be or whose sums are not float. The executor
  // must outlive the layer.
  HostLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
            const HostOptions& options = {});
  ~HostLayer();
  HostLayer(HostLayer&&) noexcept;
  HostLayer& operator=(HostLayer&&) noexcept;

  // A matrix [x][y] in the problem's block for each group, canonical (sparse::check), rows and
  // columns in whole blocks (Problem::size_in_blocks). Encodes it once for each pass of the
  // problem: GradA is Fwd of the transpose, GradW has cells of its own. Every pattern fits.
  void set_weights(std::span<const sparse::Csr<float>> weights);
  void set_weights(const sparse::Csr<float>& weights);
  // New values for a group's pattern, in the order of its values. O(values).
  void set_values(std::span<const float> values, std::int64_t group = 0);

  // s [g * y][z], q [g * x][z] written.
  template <class T>
  HostTimes forward(MatrixView<const T> s, MatrixView<T> q);
  // q_grad [g * x][z], s_grad [g * y][z] written.
  template <class T>
  HostTimes grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad);
  // q_grad [g * x][z], s [g * y][z]; gradients of all groups' values, group after group, each in
  // the order of its weights.
  template <class T>
  HostTimes grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients);

  std::int64_t values() const;  // of all groups
  // How a pass is cut, after set_weights; of the first group. GradA's x is the layer's y.
  HostCells cells(Pass pass) const;
  // Is R multiplied with its zeros in a pass, after set_weights? Groups are all alike.
  bool is_dense(Pass pass) const;
  // What rounding may do to a pass's results (verify.hpp, self_check.hpp), after set_weights.
  verify::Rounding rounding(Pass pass) const;
  // Of a pass over all groups as it was chosen, after set_weights, by the options' rates.
  HostForecast forecast(Pass pass) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::host
