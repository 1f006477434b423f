#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/internal/grid_part.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/tree_sum.hpp"

namespace tessera::distributed {

// The backend of a layer over ranks; its passes are in passes.cpp.
struct RankLayer::State : layer::BackendOf<PassTimes> {
  State(const Problem& of, internal::RankSetting with, Communicator& all, const Cut& by)
      : problem(of), setting(std::move(with)), ranks(&all), cut(by) {}

  Problem problem;
  internal::RankSetting setting;
  Communicator* ranks;
  Cut cut;
  Range batch;  // columns of this rank

  struct PreparedRank;

  // With weights, the groups of this rank:
  std::vector<std::unique_ptr<internal::GridPart>> groups;
  std::vector<GroupPart> parts;
  std::vector<Range> outputs, inputs, values;  // in the operands and gradients of the rank
  std::vector<float> sums;                     // gradients to add to others
  SumMemory memory;                            // of sums of leaves

  layer::LayerFacts facts() const override;
  std::optional<partitioner::Misfit> set_weights(
      std::vector<sparse::CheckedCsr<float>> weights) override;
  std::unique_ptr<layer::PreparedUpdate::State> prepare(const sparse::PatternChange& change,
                                                        std::int64_t group) override;
  void commit(layer::PreparedUpdate::State& update) override;
  void set_values(std::span<const float> values_of_group, std::int64_t group) override;
  void change_values(const layer::ChangePart& change, std::int64_t group) override {
    at(group).change_values(change);
  }
  const sparse::Csr<float>& weights_of(std::int64_t group) const override {
    return at(group).weights();
  }
  verify::Rounding rounding(Pass pass) const override;
  bool repairs_parts() const override { return true; }
  double seconds(const PassTimes& times) const override { return times.host.seconds; }
  bool compute(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
               PassTimes& times) override;

  bool splits_batch() const { return cut.leaves > 0; }

  // Returns the ranks that share a group.
  Range ranks_of(std::int64_t group) const {
    if (splits_batch()) return {ranks->rank(), ranks->rank() + 1};
    return ranks_of_group(group, problem.size.g, ranks->size());
  }

  // Returns the columns of all leaves of this rank.
  Range columns_of_batch() const;

  // Return where a group is among those of this rank, and the group. Throw Error{InvalidArgument}
  // for one that the rank does not have.
  std::size_t index(std::int64_t group) const;
  internal::GridPart& at(std::int64_t group) const { return *groups[index(group)]; }

  // Make the part of a group, and make new groups those of the layer.
  std::unique_ptr<internal::GridPart> make_part(std::int64_t group, internal::Grid grid,
                                                sparse::Csr<float> own);
  void take(std::vector<std::unique_ptr<internal::GridPart>> next);

  // Counts the rows and values of the groups.
  void place_groups();

 private:
  template <class T>
  bool compute_as(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
                  PassTimes& times);
  template <class Body>
  bool run_pass(const layer::PassOptions& run, PassTimes& times, const Body& body);
  template <class Body>
  bool run_group(std::size_t g, const layer::PassOptions& run, host::HostTimes& times,
                 const Body& body);
  template <class T>
  bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
              const layer::PassOptions& options, PassTimes& times);
  template <class T>
  void add_leaves(internal::GridPart& group, MatrixView<const T> q_grad, MatrixView<const T> s,
                  std::span<float> gradients, const layer::PassOptions& run,
                  host::HostTimes& times);
};

}  // namespace tessera::distributed
