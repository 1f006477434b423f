#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/collectives/run_schedule.hpp"
#include "tessera/pod/internal/pass_steps.hpp"

namespace tessera::pod::internal {

// One pass of a layer, on operands of the caller: gathers of what it reads, the step of the
// devices, and the sum of what they leave.
template <class T>
class PassRun {
 public:
  PassRun(DeviceSet& set, Pass pass, const layer::PassOptions& options, const DeviceOptions& target,
          PodLedger& ledger)
      : set_(set),
        pass_(pass),
        steps_(set, pass, options, target, ledger),
        results_(set.places().size()) {}

  // Returns false if a stop ended it.
  bool run(const layer::Operands& operands) {
    const bool is_gradient = pass_ == Pass::GradW;
    const layer::ConstView s = is_gradient ? operands.in_s : operands.in;
    for (std::int64_t part = 0; part < plan().serial_parts; ++part) {
      if (pass_ != Pass::GradA && !gather(s.as<T>(), Operand::S, part, s_)) return false;
      if (pass_ != Pass::Fwd && !gather(operands.in.as<T>(), Operand::QGrad, part, q_grad_))
        return false;
      for (const std::size_t d : steps_.devices())
        if (!is_gradient || part == 0) results_[d].assign(result_count(d, part), 0.0F);
      const auto run_device = [&](std::size_t d, runtime::FullyConnected& layer, const auto& with,
                                  device::Ledger& cost) {
        return is_gradient ? add_gradients(d, layer, with, cost)
                           : multiply(d, part, layer, with, cost);
      };
      if (!steps_.run_devices(part, run_device, results_)) return false;
      if (!is_gradient && !sum_results(operands.out.as<T>(), part)) return false;
    }
    if (is_gradient && !sum_gradients(operands.gradients)) return false;
    steps_.end();
    return true;
  }

 private:
  using Slices = std::vector<Matrix<T>>;  // [devices]

  const PodPlan& plan() const { return set_.plan(); }
  Operand result() const { return pass_ == Pass::Fwd ? Operand::Q : Operand::SGrad; }
  std::size_t result_count(std::size_t d, std::int64_t part) const {
    return std::size_t(pass_ == Pass::GradW ? set_.cell(d).values()
                                            : steps_.slice_of(result(), d, part).elements());
  }

  // The last serial part may have fewer columns than the devices' programs; the others are zero.
  Matrix<T> slice_matrix(Operand operand, std::size_t d) const {
    const Slice slice = steps_.slice_of(operand, d, 0);
    return Matrix<T>(slice.all_rows(), size_at(plan(), set_.places()[d].at).z);
  }

  // Writes each device's slice of an operand: its home part from the caller, all others by the
  // schedule of the gather. Returns false if the caller wants to stop.
  bool gather(MatrixView<const T> operand, Operand name, std::int64_t part, Slices& slices) {
    slices.clear();
    for (std::size_t d = 0; d < set_.places().size(); ++d) slices.push_back(slice_matrix(name, d));
    PassSteps::Collective gather;
    if (!steps_.begin_collective(name, gather)) return false;
    for (const Members& members : gather.groups) {
      const Slice slice = steps_.slice_of(name, members.front(), part);  // the same for all
      const std::vector<float> missing(std::size_t(slice.elements()),
                                       std::numeric_limits<float>::quiet_NaN());
      Results data(members.size(), missing);
      for (std::size_t m = 0; m < members.size(); ++m)
        for_each_element(slice, gather.part(slice.elements(), m),
                         [&](std::int64_t row, std::int64_t col, std::int64_t position) {
                           data[m][std::size_t(position)] = float(operand(row, col));
                         });
      move(gather, data);
      for (std::size_t m = 0; m < members.size(); ++m)
        for (std::int64_t p = 0; p < slice.elements(); ++p)
          slices[members[m]](p / slice.cols.size(), p % slice.cols.size()) =
              T(data[m][std::size_t(p)]);
    }
    return true;
  }

  bool multiply(std::size_t d, std::int64_t part, runtime::FullyConnected& layer,
                const layer::PassOptions& with, device::Ledger& cost) {
    Matrix<T> out = slice_matrix(result(), d);
    const bool finished =
        pass_ == Pass::Fwd
            ? layer.forward<T>(std::as_const(s_[d]).view(), out.view(), with, cost)
            : layer.grad_a<T>(std::as_const(q_grad_[d]).view(), out.view(), with, cost);
    const std::int64_t cols = steps_.slice_of(result(), d, part).cols.size();
    for (std::size_t p = 0; p < results_[d].size(); ++p)
      results_[d][p] = float(out(std::int64_t(p) / cols, std::int64_t(p) % cols));
    return finished;
  }

  // Adds the gradients of one serial part to those of the parts before it.
  bool add_gradients(std::size_t d, runtime::FullyConnected& layer, const layer::PassOptions& with,
                     device::Ledger& cost) {
    std::vector<float> own(results_[d].size());
    const bool finished = layer.grad_w<T>(std::as_const(q_grad_[d]).view(),
                                          std::as_const(s_[d]).view(), own, with, cost);
    std::ranges::transform(results_[d], own, results_[d].begin(), std::plus<>());
    return finished;
  }

  static void move(const PassSteps::Collective& collective, Results& data) {
    if (collective.schedule)
      collectives::run_schedule(*collective.schedule,
                                std::vector<std::span<float>>(data.begin(), data.end()));
  }

  // Adds the results of the devices of each group, and calls write(collective, members, sums).
  // Returns false if the caller wants to stop.
  template <class Write>
  bool sum(Operand name, const Write& write) {
    PassSteps::Collective sum;
    if (!steps_.begin_collective(name, sum)) return false;
    if (steps_.is_sample()) return true;
    for (const Members& members : sum.groups) {
      Results data;
      for (const std::size_t d : members) data.push_back(std::move(results_[d]));
      move(sum, data);
      write(sum, members, data);
    }
    return true;
  }

  // Each member of a group writes its part of the sums.
  bool sum_results(MatrixView<T> out, std::int64_t part) {
    return sum(result(), [&](const auto& sum, const Members& members, const Results& sums) {
      const Slice slice = steps_.slice_of(result(), members.front(), part);
      for (std::size_t m = 0; m < members.size(); ++m)
        for_each_element(slice, sum.part(slice.elements(), m),
                         [&](std::int64_t row, std::int64_t col, std::int64_t position) {
                           out(row, col) = T(sums[m][std::size_t(position)]);
                         });
    });
  }

  // The devices of a group have the same part of R.
  bool sum_gradients(std::span<float> gradients) {
    return sum(Operand::Gradient, [&](const auto&, const Members& members, Results& sums) {
      write_gradients(members.front(), sums.front(), gradients);
    });
  }

  void write_gradients(std::size_t d, std::span<float> sum, std::span<float> gradients) const {
    for (float& value : sum) value = float(T(value));
    const Shares shares = shares_at(plan().problem, plan().grid.parts(), set_.places()[d].at);
    std::int64_t next = 0;
    for (std::size_t i = 0; i < set_.cell(d).parts.size(); ++i) {
      const std::int64_t count = std::ssize(set_.cell(d).parts[i]->values);
      const std::int64_t group = shares.g.begin + std::int64_t(i);
      copy_to_whole(set_.cell(d).runs[i], plan().problem.block.area(),
                    sum.subspan(std::size_t(next), std::size_t(count)),
                    gradients.subspan(std::size_t(set_.first_value(group))));
      next += count;
    }
  }

  DeviceSet& set_;
  const Pass pass_;
  PassSteps steps_;
  Slices s_, q_grad_;
  Results results_;
};

}  // namespace tessera::pod::internal
