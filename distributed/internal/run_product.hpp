#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/internal/grid.hpp"
#include "tessera/distributed/internal/panels.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/times.hpp"
#include "tessera/layer/change_part.hpp"
#include "tessera/layer/pass_options.hpp"
#include "tessera/layer/prepared_update.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::distributed::internal {

// The setting that all products of a rank share.
struct RankSetting {
  host::HostCpu cpu;
  Executor* executor = nullptr;
};

// The products of one rank with its run of the rows of a part of the columns of M (grid.hpp), which
// is R in Fwd and GradW, and its transpose in GradA. All functions but those that are const are
// collective over the ranks of the grid.
class RunProduct {
 public:
  // `problem` is that of M: its x and y are M's rows and columns; `own` are the rank's values.
  RunProduct(const RankSetting& setting, Communicator& ranks, Pass pass, const Problem& problem,
             Place place, sparse::Csr<float> own);

  // Writes q, this rank's rows of M S, from its rows of S, with bias and activation. Returns false
  // if options.stop ended it, which all ranks of a part must have alike. `times` are added.
  template <class T>
  bool product(MatrixView<const T> s, MatrixView<T> q, const layer::PassOptions& options,
               host::HostTimes& times);

  // Writes the gradients of this rank's values, from its rows of dQ and of S.
  template <class T>
  bool gradients(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                 const layer::PassOptions& options, host::HostTimes& times);

  // A change of the rank's values that was prepared, without communication left.
  struct Prepared {
    std::optional<layer::PreparedUpdate> update;
    std::optional<host::HostLayer> recut;  // the changed layer, if all ranks cut theirs again
    std::int64_t blocks = 0;               // of all ranks of the part
  };
  Prepared prepare(const sparse::PatternChange& change);
  void commit(Prepared& prepared);
  void set_values(std::span<const float> values);
  void change_values(const layer::ChangePart& change);

  const Place& place() const { return place_; }
  const sparse::Csr<float>& weights() const { return layer_ ? layer_->weights() : empty_; }
  verify::Rounding rounding(Pass pass) const;

 private:
  // A pass over the gathered panels of an operand.
  struct Gathering {
    Pass pass = Pass::Fwd;
    std::string_view what;      // travels
    host::HostColumns columns;  // of the panels of HostLayer
    std::int64_t widest = 0;
  };
  template <class T>
  using PanelMemory = std::array<AlignedVector<T>, 2>;

  template <class T, class Body>
  bool for_each_panel(const Gathering& of, MatrixView<const T> own, const layer::PassOptions& run,
                      host::HostTimes& times, const Body& body);
  template <class T, class Body>
  void run_panel(Pass pass, MatrixView<const T> panel, Range columns, const layer::PassOptions& run,
                 host::HostTimes& times, const Body& body);
  host::HostProblem whole(std::int64_t blocks) const;
  host::HostCells cells_of_whole(std::int64_t blocks) const;
  host::HostLayer layer_of(sparse::Csr<float> own, std::int64_t blocks) const;
  MatrixView<float> run_rows(std::int64_t cols);
  std::span<float> piece(int part);
  std::vector<const float*> exchange_sums(std::size_t size, bool is_checked);
  void add_partial_sums(MatrixView<float> q, const layer::PassOptions& options);

  RankSetting setting_;
  Communicator& ranks_;
  Pass pass_;
  Problem problem_;  // of the part
  Place place_;
  SubRanks of_part_, of_run_;
  std::optional<host::HostLayer> layer_;  // empty for a rank without rows
  sparse::Csr<float> empty_;              // weights of such a rank
  std::int64_t blocks_ = 0;               // of all ranks of the part
  std::tuple<PanelMemory<float>, PanelMemory<Half>, PanelMemory<BFloat16>> memory_;
  PanelMemory<float> run_memory_;  // rows of dQ of the whole run
  Matrix<float> run_rows_;         // partial sums of the whole run
  std::vector<float> received_;
};

}  // namespace tessera::distributed::internal
