#include "tessera/distributed/internal/run_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/host/pass_options.hpp"

namespace tessera::distributed::internal {
namespace {

// Columns of the widest panel of a product. On the computers of bench/results/distributed.md wider
// ones hide less of the copies.
constexpr std::int64_t kWidestPanel = 64;

// The sides of cells along y and z, which are read here, are the same for any number of threads.
constexpr int kAnyThreads = 1;

Problem problem_of_part(Problem problem, const Place& place) {
  problem.size.y = place.columns.size();
  problem.grad_a = false;
  return problem;
}

}  // namespace

RunProduct::RunProduct(const RankSetting& setting, Communicator& ranks, Pass pass,
                       const Problem& problem, Place place, sparse::Csr<float> own)
    : setting_(setting),
      ranks_(ranks),
      pass_(pass),
      problem_(problem_of_part(problem, place)),
      place_(std::move(place)),
      of_part_(ranks, place_.of_part),
      of_run_(ranks, place_.of_run),
      blocks_(sum_of_ranks(of_part_, "numbers of blocks", own.blocks())) {
  if (place_.rows.size() == 0) {
    empty_ = std::move(own);
    return;
  }
  layer_.emplace(layer_of(std::move(own), blocks_));
}

// Panels and cells are those of HostLayer for all rows, with so many blocks.
host::HostProblem RunProduct::whole(std::int64_t blocks) const {
  return {problem_.size_in_blocks(), problem_.block, blocks, problem_.data_type};
}

host::HostCells RunProduct::cells_of_whole(std::int64_t blocks) const {
  return product_cells(whole(blocks), setting_.cpu, kAnyThreads);
}

// The cells of the layer end where those of a layer with all ranks' rows end, because sums are
// interrupted there. Packed rows are left out: they are faster for some sizes of a part only, and
// they add in another order than cells do, so that the last bits would depend on the ranks.
host::HostLayer RunProduct::layer_of(sparse::Csr<float> own, std::int64_t blocks) const {
  Problem of_run = problem_;
  of_run.size.x = place_.rows.size();
  const double rows = double(whole(blocks).size.x);
  host::HostLayer layer(
      of_run, setting_.cpu, *setting_.executor,
      host::HostOptions{.reads_rows = false, .blocks_in_row = double(blocks) / rows});
  layer.set_weights(std::move(own));
  return layer;
}

// Calls body(panel, columns, options of the panel, times) for all panels, until it or a stop ends
// the pass. Returns true if nothing did.
template <class T, class Body>
bool RunProduct::for_each_panel(const Gathering& of, MatrixView<const T> own,
                                const layer::PassOptions& run, host::HostTimes& times,
                                const Body& body) {
  const auto goes_on = [&](std::int64_t panel) {
    if (run.stop.stop_possible() && any_rank(of_part_, "wishes to stop", run.stop.stop_requested()))
      return false;
    if (run.progress) run.progress({of.what, panel});
    return true;
  };
  const std::int64_t z = own.cols;
  if (of_part_.size() == 1) {
    if (!goes_on(0)) return false;
    run_panel(of.pass, own, {0, z}, run, times, body);
    return true;
  }
  GatheredPanels<T> panels(
      of_part_, *setting_.executor, place_.operand, std::get<PanelMemory<T>>(memory_), of.what, own,
      panel_ranges(z, of.columns.width, of.widest), of.columns.stride, run.self_check != nullptr);
  for (std::int64_t panel = 0; panel < panels.count(); ++panel) {
    const MatrixView<const T> rows_of_part = panels.next();
    if (!goes_on(panel)) {
      panels.end();
      return false;
    }
    run_panel(of.pass, rows_of_part, panels.columns(panel), run, times, body);
  }
  panels.end();
  return true;
}

template <class T, class Body>
void RunProduct::run_panel(Pass pass, MatrixView<const T> panel, Range columns,
                           const layer::PassOptions& run, host::HostTimes& times,
                           const Body& body) {
  if (!layer_) return;
  verify::Checksums checksums;
  layer::PassOptions of_panel;
  if (run.self_check != nullptr) of_panel.self_check = &checksums;
  of_panel.repair = run.repair;
  host::HostTimes seconds;
  try {
    [[maybe_unused]] const bool finished = body(panel, columns, of_panel, seconds);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::CheckFailed) throw;
    throw Error(error.code(),
                fmt::format("{} of columns {} to {} on rank {}{}: {}", to_string(pass),
                            columns.begin, columns.end, of_part_.number(of_part_.rank()),
                            pass == Pass::GradA ? ", as Fwd of R transposed" : "", error.what()));
  }
  times += seconds;
  if (run.self_check != nullptr && checksums.compared > 0)
    verify::add_part(checksums, *run.self_check);
}

template <class T>
bool RunProduct::product(MatrixView<const T> s, MatrixView<T> q, const layer::PassOptions& options,
                         host::HostTimes& times) {
  const host::HostProblem all = whole(blocks_);
  host::HostColumns panels = product_columns(cells_of_whole(blocks_), all, s.cols, setting_.cpu);
  panels.stride = std::min(panels.width, kWidestPanel);
  const std::string_view what = pass_ == Pass::GradA ? "GradA: rows of dQ" : "Fwd: rows of S";
  const bool adds = of_run_.size() > 1;
  MatrixView<T> sums = q;
  if constexpr (std::is_same_v<T, float>)
    if (adds) sums = run_rows(s.cols);
  const bool finished = for_each_panel(
      {pass_, what, panels, kWidestPanel}, s, options, times,
      [&](MatrixView<const T> panel, Range columns, auto& of_panel, auto& seconds) {
        if (!adds) {
          of_panel.bias = options.bias;
          of_panel.activation = options.activation;
        }
        return layer_->forward<T>(panel, sums.sub({0, sums.rows}, columns), of_panel, seconds);
      });
  if constexpr (std::is_same_v<T, float>)
    if (adds && finished) add_partial_sums(q, options);
  return finished;
}

template <class T>
bool RunProduct::gradients(MatrixView<const T> q_grad, MatrixView<const T> s,
                           std::span<float> gradients, const layer::PassOptions& options,
                           host::HostTimes& times) {
  const host::HostColumns panels =
      gradient_columns(gradient_cells(whole(blocks_), setting_.cpu), s.cols);
  if (s.cols == 0) std::ranges::fill(gradients, 0.0f);
  if constexpr (std::is_same_v<T, float>)
    if (of_run_.size() > 1) {
      GatheredPanels<float> rows_of_run(
          of_run_, *setting_.executor, place_.results, run_memory_, "GradW: rows of dQ", q_grad,
          std::vector<Range>{{0, q_grad.cols}}, q_grad.cols, options.self_check != nullptr);
      q_grad = rows_of_run.next();
      rows_of_run.end();
    }
  return for_each_panel(
      {Pass::GradW, "GradW: rows of S", panels, panels.width}, s, options, times,
      [&](MatrixView<const T> panel, Range columns, auto& of_panel, auto& seconds) {
        if (columns.begin > 0) of_panel.accumulate = layer::Accumulate::Yes;
        return layer_->grad_w<T>(q_grad.sub({0, q_grad.rows}, columns), panel, gradients, of_panel,
                                 seconds);
      });
}

MatrixView<float> RunProduct::run_rows(std::int64_t cols) {
  if (run_rows_.rows() != place_.rows.size() || run_rows_.cols() != cols)
    run_rows_ = Matrix<float>(place_.rows.size(), cols);
  return run_rows_.view();
}

// Returns the rows of the run that one of its ranks has of results.
std::span<float> RunProduct::piece(int part) {
  const Range rows = place_.results.of(part);
  return std::span(run_rows_.elements())
      .subspan(std::size_t(rows.begin * run_rows_.cols()),
               std::size_t(rows.size() * run_rows_.cols()));
}

// Sends the partial sums of this rank to the ranks with these rows of the results. Returns those of
// its own rows, `size` numbers of each part.
std::vector<const float*> RunProduct::exchange_sums(std::size_t size, bool is_checked) {
  std::vector<SendPiece> sends;
  std::span<const float> own;  // the sums that stay here, if there are any
  for (int i = 0; i < std::ssize(place_.to); ++i) {
    const int rank = place_.to[std::size_t(i)];
    if (rank == ranks_.rank())
      own = piece(i);
    else
      sends.push_back({rank, std::as_bytes(piece(i))});
  }
  received_.resize(size * place_.from.size());
  std::vector<ReceivePiece> receives;
  std::vector<const float*> sums;  // of each part
  for (const int rank : place_.from) {
    const auto from = std::span(received_).subspan(size * sums.size(), size);
    sums.push_back(rank == ranks_.rank() ? own.data() : from.data());
    if (rank != ranks_.rank()) receives.push_back({rank, std::as_writable_bytes(from)});
  }
  ranks_.exchange("partial sums", sends, receives, is_checked);
  return sums;
}

// Adds up the partial sums of this rank's rows in the order of the parts.
void RunProduct::add_partial_sums(MatrixView<float> q, const layer::PassOptions& options) {
  std::vector<const float*> sums =
      exchange_sums(std::size_t(q.rows * q.cols), options.self_check != nullptr);
  std::vector<float> row(std::size_t(q.cols));
  for (std::int64_t r = 0; r < q.rows; ++r) {
    for (std::int64_t c = 0; c < q.cols; ++c) {
      float sum = *sums[0]++;
      for (std::size_t part = 1; part < sums.size(); ++part) sum += *sums[part]++;
      row[std::size_t(c)] = options.bias.empty() ? sum : sum + options.bias[std::size_t(r)];
    }
    host::activate(options.activation, row);
    for (std::int64_t c = 0; c < q.cols; ++c) q(r, c) = row[std::size_t(c)];
  }
}

RunProduct::Prepared RunProduct::prepare(const sparse::PatternChange& change) {
  Prepared prepared;
  if (layer_)
    prepared.update.emplace(layer_->prepare_update(change));
  else if (!change.removed.empty() || !change.added.empty())
    throw_invalid(fmt::format("change of the pattern: rank {} has no rows to change",
                              of_part_.number(of_part_.rank())));
  prepared.blocks = blocks_ + sum_of_ranks(of_part_, "numbers of blocks",
                                           std::ssize(change.added) - std::ssize(change.removed));
  // The update is kept beside a layer that is cut again: it says where blocks are placed. Cells of
  // blocks do not depend on the density of other rows.
  const host::HostCells before = cells_of_whole(blocks_), after = cells_of_whole(prepared.blocks);
  if (layer_ && problem_.block.is_element() && (before.y != after.y || before.z != after.z))
    prepared.recut.emplace(
        layer_of(sparse::with_change(layer_->weights(), change), prepared.blocks));
  return prepared;
}

void RunProduct::commit(Prepared& prepared) {
  if (prepared.recut)
    layer_ = std::move(prepared.recut);
  else if (layer_)
    layer_->commit(*std::move(prepared.update));
  blocks_ = prepared.blocks;
}

void RunProduct::set_values(std::span<const float> values) {
  if (layer_) layer_->set_values(values);
}

void RunProduct::change_values(const layer::ChangePart& change) {
  if (layer_) layer_->change_values(change);
}

// Sums are those of one process, so their number of terms is that of its cells.
verify::Rounding RunProduct::rounding(Pass pass) const {
  const host::HostCells cells = host::cells_of(pass == Pass::GradW ? pass : Pass::Fwd,
                                               whole(blocks_), setting_.cpu, kAnyThreads);
  constexpr std::int64_t kLanes = 16;  // of the widest vectors
  const Dims size = problem_.size;
  if (pass == Pass::GradW)
    return {DataType::Float, DataType::Float,
            kLanes + ceil_div(size.z, gradient_columns(cells, size.z).width)};
  return {problem_.data_type, DataType::Float,
          ceil_div(size.y, cells.y) + std::int64_t{of_run_.size()}};
}

#define TESSERA_INSTANTIATE(T)                                                                     \
  template bool RunProduct::product(MatrixView<const T>, MatrixView<T>, const layer::PassOptions&, \
                                    host::HostTimes&);                                             \
  template bool RunProduct::gradients(MatrixView<const T>, MatrixView<const T>, std::span<float>,  \
                                      const layer::PassOptions&, host::HostTimes&)
TESSERA_INSTANTIATE(float);
TESSERA_INSTANTIATE(Half);
TESSERA_INSTANTIATE(BFloat16);
#undef TESSERA_INSTANTIATE

}  // namespace tessera::distributed::internal
