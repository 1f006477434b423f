#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "tessera/host/internal/group.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/verify/product_sums.hpp"

namespace tessera::host::internal {

using HostGroups = std::variant<std::vector<HostGroup<float>>, std::vector<HostGroup<Half>>,
                                std::vector<HostGroup<BFloat16>>>;

// Says if HostUpdate::change is used after prepare(). If it is not, and the matrix is encoded again
// anyway, the changed places are not searched, which saves a part of the time.
enum class Places { Kept, Unused };

// A change of one group's pattern that is ready to be made: edits of its cells, or the changed
// matrix with the encoded group, or with all groups if the choice of forms changes.
struct HostUpdate {
  std::size_t group = 0;
  PassForms forms;
  std::vector<sparse::PlacedBlock> change;
  std::optional<GroupEdits> edits;
  sparse::Csr<float> changed;
  HostGroups encoded;
};

// The weights of a layer, for each group: as they were given, and in the form each pass reads.
// Invariants:
//   1. given_ is empty before the first set(); then it has one matrix for each group, and groups_
//      hold the same patterns and values.
//   2. forms_ is the choice for given_[0], and all groups follow it.
//   3. A function that throws leaves these unchanged: weights are encoded beside the old ones and
//      replace them, or cells are changed in place, when nothing can throw any more.
class HostWeights {
 public:
  // The executor must outlive this object.
  HostWeights(const Problem& problem, const HostCpu& cpu, Executor& executor,
              const HostOptions& options);

  // The functions of HostLayer with these names.
  void set(std::vector<sparse::Csr<float>> given);
  HostUpdate prepare(const sparse::PatternChange& change, std::int64_t group, Places places);
  void commit(HostUpdate&& update);
  void set_values(std::span<const float> values, std::int64_t group);
  void change_values(const layer::ChangePart& change, std::int64_t group);
  HostForecast forecast(Pass pass) const;
  HostCells cells(Pass pass) const;

  bool empty() const { return given_.empty(); }
  PassForm form(Pass pass) const { return forms_[pass]; }

  // Only after set(), and for a group that the layer has.
  const sparse::Csr<float>& given(std::int64_t group) const { return given_[std::size_t(group)]; }
  std::int64_t values() const;
  std::int64_t bytes() const;
  template <class T>
  std::vector<HostGroup<T>>& groups() {
    return std::get<std::vector<HostGroup<T>>>(groups_);
  }

  template <class T>
  const std::vector<HostGroup<T>>& groups() const {
    return std::get<std::vector<HostGroup<T>>>(groups_);
  }

  // Returns the sums that a self-check of a product compares with. O(values) at the first call
  // after a change, then O(1).
  template <class T>
  const verify::ProductSums& product_sums(Pass pass, std::int64_t group) {
    const Dims& size = setting_.problem.size;
    if (pass == Pass::Fwd)
      return sums_.of<T>(given(group), verify::Factor::Matrix, group, size.x, size.y);
    return sums_.of<T>(given(group), verify::Factor::Transpose, group, size.y, size.x);
  }
  Executor& executor() const { return *setting_.executor; }

  // Calls run(group) with the HostGroup of the layer's type.
  template <class Run>
  decltype(auto) visit(std::int64_t group, Run&& run) {
    return std::visit([&](auto& all) -> decltype(auto) { return run(all[std::size_t(group)]); },
                      groups_);
  }

 private:
  void encode(HostUpdate& update) const;
  HostProblem host_problem(std::int64_t blocks) const;  // of one group
  HostSetting forecast_setting() const;
  PassForms choose_forms(std::int64_t blocks) const;

  GroupSetting setting_;
  HostOptions options_;
  int threads_;
  PassForms forms_;
  HostGroups groups_;
  std::vector<sparse::Csr<float>> given_;
  verify::KeptSums sums_;  // of given_
};

}  // namespace tessera::host::internal
