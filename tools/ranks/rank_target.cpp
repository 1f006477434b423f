#include "tessera/tools/ranks/internal/rank_target.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/restrict.hpp"

namespace tessera::tools::internal {
namespace {

using distributed::Communicator, distributed::GroupPart, distributed::PassTimes;

// The times of one rank that travel to the first one.
struct RankTimes {
  report::HostRankPass pass;
  double copy_seconds = 0, kernel_seconds = 0;
};

RankTimes flat(const PassTimes& t) {
  return {{t.host.seconds, t.gather_seconds, t.received_bytes},
          t.host.copy_seconds,
          t.host.kernel_seconds};
}

// One run of a pass on all ranks: they end with the slowest one.
host::HostTimes slowest(const std::vector<RankTimes>& of_run) {
  host::HostTimes times;
  for (const RankTimes& t : of_run) {
    times.seconds = std::max(times.seconds, t.pass.seconds);
    times.copy_seconds = std::max(times.copy_seconds, t.copy_seconds);
    times.kernel_seconds += t.kernel_seconds;
  }
  return times;
}

// Adds the self-checks of all ranks up. They have found nothing wrong, or the pass had ended.
verify::Checksums sum_of(Communicator& ranks, const verify::Checksums& own) {
  struct Sums {
    std::int64_t compared, recomputed;
    double worst;
    bool exact;
  };
  verify::Checksums all;
  for (const Sums& one :
       gather(ranks, "self-checks", Sums{own.compared, own.recomputed, own.worst, own.exact}))
    if (one.compared > 0)
      verify::add_part({.exact = one.exact,
                        .compared = one.compared,
                        .recomputed = one.recomputed,
                        .worst = one.worst},
                       all);
  return all;
}

}  // namespace

bool RankTarget::run(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
                     const FaultOfRun&) {
  constexpr double kSeconds = 0.1;
  const auto once = [&](const layer::PassOptions& with) {
    PassTimes times;
    ranks_.barrier("start of a pass");
    static_cast<void>(run_pass(layer_, pass, operands, with, times));
    return gather(ranks_, "times of a pass", flat(times));
  };
  once({});  // allocates memory and warms the caches
  std::vector<std::vector<RankTimes>> runs{once({})};
  const double first = std::max(slowest(runs[0]).seconds, 1e-9);
  const auto wanted = static_cast<std::size_t>(std::clamp(kSeconds / first, 3.0, 25.0));
  while (runs.size() < wanted) runs.push_back(once({}));
  std::ranges::sort(runs, {}, [](const auto& of_run) { return slowest(of_run).seconds; });
  std::vector<host::HostTimes> times;
  for (const auto& of_run : runs) times.push_back(slowest(of_run));
  take_times(pass, study::median_of(times));
  for (const RankTimes& rank : runs[runs.size() / 2]) report_of(pass).ranks.push_back(rank.pass);
  if (options.self_check == nullptr) return true;
  once({.self_check = options.self_check, .repair = options.repair});
  *options.self_check = sum_of(ranks_, *options.self_check);
  return true;
}

std::vector<GroupShare> RankTarget::shares() const {
  std::vector<GroupShare> all;
  for (const GroupPart& part : layer_.parts())
    all.push_back({part.group, part.outputs, part.inputs, part.rows, part.columns});
  return all;
}

// The rows of R, or of its transpose for GradA, that these results need.
sparse::CheckedCsr<float> RankTarget::matrix(Pass pass, const GroupShare& share) const {
  const bool is_gradient = pass == Pass::GradW, is_transposed = pass == Pass::GradA;
  const std::int64_t rows = is_gradient     ? share.rows.size()
                            : is_transposed ? share.inputs.size()
                                            : share.outputs.size();
  const std::int64_t cols = is_gradient     ? share.columns.size()
                            : is_transposed ? weights_.rows
                                            : weights_.cols;
  if (is_gradient) return sparse::inside(layer_.weights(share.group), rows, cols);
  if (!rank_weights_.is_whole)
    return sparse::inside(is_transposed ? layer_.columns() : layer_.weights(), rows, cols);
  const sparse::CheckedCsr<float>& all = weights_.of_group(share.group);
  return sparse::inside(is_transposed ? sparse::rows_of(*sparse::transpose(all), share.inputs)
                                      : sparse::rows_of(*all, share.outputs),
                        rows, cols);
}

verify::Verdict RankTarget::of_all(const verify::Verdict& own) {
  verify::Verdict all;
  for (const verify::Verdict& verdict : gather(ranks_, "verdicts", own))
    if (verdict.compared > 0) verify::add_part(verdict, all);
  return all;
}

void RankTarget::collect(Range GroupShare::* rows, layer::ConstView own, layer::View all) {
  const auto shares = distributed::lists_on_first(ranks_, "parts of the ranks", this->shares());
  with_type(own.type, [&]<class T>(T) {
    const MatrixView<const T> mine = own.as<T>();
    const auto count = static_cast<std::size_t>(mine.rows * mine.cols);
    const std::vector<T> values =
        distributed::lists_on_first(ranks_, "results", std::span<const T>(mine.data, count));
    if (all.empty()) return;
    const std::int64_t rows_of_group = all.rows / layer_.facts().problem.size.g;
    auto from = values.begin();
    for (const GroupShare& share : shares) {
      const std::int64_t first = share.group * rows_of_group + (share.*rows).begin;
      const std::int64_t taken = (share.*rows).size() * all.cols;
      std::copy_n(from, taken, all.as<T>().data + first * all.cols);
      from += taken;
    }
  });
}

sparse::Csr<float> RankTarget::whole(const sparse::Coo<float>& own) {
  sparse::Coo<float> all{
      .rows = own.rows, .cols = own.cols, .block = own.block, .row = {}, .col = {}, .values = {}};
  all.row = distributed::lists_on_first(ranks_, "rows of the gradients", own.row);
  all.col = distributed::lists_on_first(ranks_, "columns of the gradients", own.col);
  all.values = distributed::lists_on_first(ranks_, "gradients", own.values);
  return sparse::inside(sparse::to_csr(all), weights_.rows, weights_.cols);
}

std::vector<sparse::Csr<float>> RankTarget::collect(std::vector<sparse::Csr<float>> gradients) {
  const Problem problem = layer_.facts().problem;
  const Dims size = problem.size_in_blocks();
  const BlockShape block = problem.block;
  std::vector<sparse::Csr<float>> all;
  for (std::int64_t group = 0; group < size.g; ++group) {
    sparse::Coo<float> places{.rows = size.x, .cols = size.y, .block = block};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const GroupPart& part = layer_.parts()[i];
      if (part.group != group) continue;
      places = sparse::to_coo(gradients[i]);
      places.rows = size.x;
      places.cols = size.y;
      for (std::int32_t& row : places.row)
        row += static_cast<std::int32_t>(ceil_div(part.rows.begin, block.rows));
      for (std::int32_t& col : places.col)
        col += static_cast<std::int32_t>(ceil_div(part.columns.begin, block.cols));
    }
    all.push_back(whole(places));
  }
  return all;
}

}  // namespace tessera::tools::internal
