#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/run_options.hpp"

namespace tessera::distributed {

// A layer of several groups, each with a matrix of its own, whose rows are spread over ranks. With
// g groups on P ranks
//   g a multiple of P   a rank has whole groups, and receives nothing
//   P a multiple of g   a group has P / g ranks, as a DistributedLayer of its own
//   else                every group is spread over all ranks
// The operands of a rank are its rows of each of its groups, one group below the other. Results
// have the bits of a host::HostLayer of all groups, for any number of ranks.
//
// All functions that are not const are collective, and throw as those of DistributedLayer do.
class GroupedLayer {
 public:
  GroupedLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
               Communicator& ranks);
  ~GroupedLayer();

  // Takes the whole matrix of every group, the same on every rank, and keeps this rank's part.
  void set_weights(std::span<const sparse::Csr<float>> weights);

  // Sets the values of this rank's rows: group after group, each in the order of its weights().
  void set_values(std::span<const float> values);

  // Write q from s, s_grad from q_grad, and the gradients of this rank's values in the order of
  // set_values. T is float, Half or BFloat16.
  template <class T>
  PassTimes forward(MatrixView<const T> s, MatrixView<T> q);
  template <class T>
  PassTimes grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad);
  template <class T>
  PassTimes grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients);

  // The same with options of the run, as those of DistributedLayer. Ranks agree on a stop before
  // the pass begins; a step is a panel of columns of one group.
  template <class T>
  [[nodiscard]] bool forward(MatrixView<const T> s, MatrixView<T> q,
                             const verify::RunOptions& options, PassTimes& times);
  template <class T>
  [[nodiscard]] bool grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const verify::RunOptions& options, PassTimes& times);
  template <class T>
  [[nodiscard]] bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, const verify::RunOptions& options,
                            PassTimes& times);

  // Returns the groups of which this rank has rows, ascending.
  const std::vector<std::int64_t>& groups() const;

  // Return this rank's rows of Q and S of one of its groups, counted in that group; its rows of all
  // groups together; and its weights of a group. They need weights.
  Range outputs(std::int64_t group) const;
  Range inputs(std::int64_t group) const;
  std::int64_t output_rows() const;
  std::int64_t input_rows() const;
  const sparse::Csr<float>& weights(std::int64_t group) const;

  // Returns the number of values of this rank.
  std::int64_t values() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::distributed
