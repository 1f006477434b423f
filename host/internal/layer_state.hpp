#pragma once

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/host/internal/weights.hpp"
#include "tessera/host/layer.hpp"

namespace tessera::host {

// The backend of a layer on this computer; its passes are in passes.cpp.
struct HostLayer::State : layer::BackendOf<HostTimes> {
  State(const Problem& of, internal::HostWeights&& w) : problem(of), weights(std::move(w)) {}

  Problem problem;
  internal::HostWeights weights;

  layer::LayerFacts facts() const override;

  // Throws Error{InvalidArgument} before the first weights.
  void require_weights(std::string_view call) const;
  // Throws the same for operands of another type than T, and returns the groups.
  template <class T>
  std::vector<internal::HostGroup<T>>& checked_groups(std::string_view call);
  // Returns a group's rows of an operand; `side` is the size that gives its rows in each group.
  template <class T>
  MatrixView<T> part(std::string_view name, MatrixView<T> view, std::int64_t Dims::* side,
                     std::int64_t group) const;
  // Returns the rounding of a pass over z columns.
  verify::Rounding rounding_of(Pass pass, std::int64_t z) const;
  verify::Rounding rounding(Pass pass) const override { return rounding_of(pass, problem.size.z); }

  std::optional<partitioner::Misfit> set_weights(
      std::vector<sparse::CheckedCsr<float>> given) override;
  std::unique_ptr<layer::PreparedUpdate::State> prepare(const sparse::PatternChange& change,
                                                        std::int64_t group) override;
  void commit(layer::PreparedUpdate::State& update) override;
  std::optional<partitioner::Misfit> update_weights(const sparse::PatternChange& change,
                                                    std::int64_t group) override;
  void set_values(std::span<const float> values, std::int64_t group) override {
    weights.set_values(values, group);
  }
  void change_values(const layer::ChangePart& change, std::int64_t group) override;
  const sparse::Csr<float>& weights_of(std::int64_t group) const override {
    return weights.given(group);
  }

  template <class T>
  const internal::HostProduct<T>& forward_cells(std::string_view call, std::int64_t group);

 private:
  OneCaller::Call begin(Pass pass) override { return caller.enter_pass(call_of(pass)); }
  bool compute(Pass pass, const layer::Operands& operands, const PassOptions& options,
               HostTimes& times) override;
  double seconds(const HostTimes& times) const override { return times.seconds; }

  // Returns what comes after the product of one group.
  template <class T>
  internal::Epilogue<T> epilogue(Pass pass, const PassOptions& options, std::int64_t group) const;

  // Run a pass over all groups. Return false if the caller stopped it.
  template <class T>
  [[nodiscard]] bool run_product(Pass pass, MatrixView<const T> in, MatrixView<T> out,
                                 const PassOptions& options, HostTimes& times);
  template <class T>
  [[nodiscard]] bool run_gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                                  std::span<float> gradients, const PassOptions& options,
                                  HostTimes& times);
  template <class T>
  [[nodiscard]] bool run_groups(MatrixView<const T> q_grad, MatrixView<const T> s,
                                std::span<float> gradients, Accumulate accumulate,
                                internal::PassControl& control, HostTimes& times);

  // Self-checks (verify/self_check.hpp) of the results of all groups.
  template <class T>
  void check_product(Pass pass, MatrixView<const T> in, MatrixView<const T> out,
                     verify::Checksums& all);
  template <class T>
  void check_gradient(std::span<const float> gradients, MatrixView<const T> q_grad,
                      MatrixView<const T> s, verify::Checksums& all) const;
};

inline HostLayer::State& HostLayer::state() const { return static_cast<State&>(backend()); }

inline void HostLayer::State::require_weights(std::string_view call) const {
  if (weights.empty())
    throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", call));
}

template <class T>
std::vector<internal::HostGroup<T>>& HostLayer::State::checked_groups(std::string_view call) {
  if (data_type_of<T>() != problem.data_type)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: operands are {} but the layer is {}", call,
                            to_string(data_type_of<T>()), to_string(problem.data_type)));
  require_weights(call);
  return weights.groups<T>();
}

template <class T>
MatrixView<T> HostLayer::State::part(std::string_view name, MatrixView<T> view,
                                     std::int64_t Dims::* side, std::int64_t group) const {
  const std::int64_t rows = problem.size.*side;
  if (view.rows != problem.size.g * rows || view.cols < 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is {} x {}; this layer needs {} rows and any number of columns",
                            name, view.rows, view.cols, problem.size.g * rows));
  return view.sub({group * rows, (group + 1) * rows}, {0, view.cols});
}

template <class T>
const internal::HostProduct<T>& HostLayer::State::forward_cells(std::string_view call,
                                                                std::int64_t group) {
  auto& groups = checked_groups<T>(call);
  const internal::HostProduct<T>* const cells = groups[std::size_t(group)].forward_cells();
  if (cells == nullptr)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format(
            "{}: the forward pass {}, so there are no buckets; use weights() and "
            "set_values(){}",
            call,
            weights.form(Pass::Fwd) == internal::PassForm::Dense ? "is dense" : "reads packed rows",
            weights.form(Pass::Fwd) == internal::PassForm::Dense ? ", or DenseChoice::Never" : ""));
  return *cells;
}

}  // namespace tessera::host
