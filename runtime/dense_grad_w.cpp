#include "tessera/runtime/dense_grad_w.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/runtime/internal/dense_pass.hpp"
#include "tessera/runtime/internal/joined_runs.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/own_pass.hpp"
#include "tessera/runtime/internal/padded.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::runtime {

using codelets::is_better;
using codelets::ScoredPlace;
using internal::DensePass;
using internal::RunSeries;
using internal::SelectionHeader;
using internal::SelectionRequest;
using sparse::BlockAt;
using sparse::Csr;

namespace {

[[noreturn]] void refuse_gradients(std::string_view name, const std::string& what) {
  throw_invalid(fmt::format("search for the largest gradients: {}: {}", name, what));
}

// The round and the part of one dimension that has a block, and its number there.
struct BlockHome {
  std::int64_t round = 0, part = 0, inside = 0;
};

}  // namespace

struct DenseGradW::State {
  State(const planner::DenseGradWPlan& made, const device::Machine& machine,
        device::ExchangeMode mode, Executor& executor)
      : plan(made),
        own(machine, mode, executor, plan.dense, Pass::GradW,
            std::optional(DensePass::Selection{
                .block = plan.block, .keep = plan.keep, .round_grain = plan.round_grain})) {
    find_homes();
  }

  DensePass::Selection& selection() { return *pass.selection; }
  std::int64_t block_rows() const { return std::ssize(row_homes); }
  std::int64_t block_columns() const { return std::ssize(column_homes); }

  void find_homes();
  void check(const Csr<float>& taken, std::int64_t k, std::string_view name) const;
  template <class T>
  void check_operands(MatrixView<const T> q_grad, MatrixView<const T> s,
                      std::string_view name) const;
  void set_taken(const Csr<float>& taken);
  void check_memory(const PassOptions& options) const;
  bool run(RunSeries& series, const PassOptions& options, LargestGradients& found);
  bool read_lists(RunSeries& series, const PassOptions& options, LargestGradients& found);
  bool is_complete(std::int64_t k);
  bool choose(std::int64_t k, std::string_view name, const PassOptions& options,
              LargestGradients& found);

  planner::DenseGradWPlan plan;
  internal::OwnPass<DensePass> own;
  DensePass& pass = *own.operator->();
  std::vector<BlockHome> row_homes, column_homes;  // [block rows], [block columns]
  std::vector<std::byte> left, right;              // operands of the current run
  internal::DenseArrays arrays;
  std::vector<ScoredPlace> candidates;
};

void DenseGradW::State::find_homes() {
  const planner::ProductShape& size = plan.pass().product.size;
  row_homes.resize(std::size_t(ceil_div(size.rows, plan.block.rows)));
  column_homes.resize(std::size_t(ceil_div(size.columns, plan.block.cols)));
  const auto fill = [](std::vector<BlockHome>& homes, Range range, std::int64_t side,
                       std::int64_t round, std::int64_t part) {
    for (std::int64_t b = range.begin; b < range.end; b += side)
      homes[std::size_t(b / side)] = {round, part, (b - range.begin) / side};
  };
  for (const DensePass::Round& round : pass.rounds)
    for (const TileId tile : pass.all) {
      const Cell c = pass.map.cell(tile);
      if (c.z == 0) fill(row_homes, pass.rows_of(round, c), plan.block.rows, round.at.rows, c.x);
      if (c.x == 0)
        fill(column_homes, pass.columns_of(round, c), plan.block.cols, round.at.columns, c.z);
    }
}

void DenseGradW::State::check(const Csr<float>& taken, std::int64_t k,
                              std::string_view name) const {
  if (taken.block != plan.block || taken.block_rows() != block_rows() ||
      taken.block_cols() != block_columns())
    refuse_gradients(name, fmt::format("the pattern has {} x {} blocks of {} x {}; the plan has {} "
                                       "x {} of {} x {}",
                                       taken.block_rows(), taken.block_cols(), taken.block.rows,
                                       taken.block.cols, block_rows(), block_columns(),
                                       plan.block.rows, plan.block.cols));
  const std::int64_t free = block_rows() * block_columns() - taken.blocks();
  if (k < 0 || k > free)
    refuse_gradients(
        name, fmt::format("{} of {} free places; the number must be in 0..{}", k, free, free));
}

template <class T>
void DenseGradW::State::check_operands(MatrixView<const T> q_grad, MatrixView<const T> s,
                                       std::string_view name) const {
  const planner::ProductShape& size = plan.pass().product.size;
  if (data_type_of<T>() != plan.dense.data_type)
    refuse_gradients(name,
                     fmt::format("operands are {} and the plan is {}", to_string(data_type_of<T>()),
                                 to_string(plan.dense.data_type)));
  if (q_grad.rows != size.rows || s.rows != size.columns || q_grad.cols != size.inner ||
      s.cols != size.inner)
    refuse_gradients(name,
                     fmt::format("the gradient of the output is {} x {} and the input {} x {}; the "
                                 "plan has {} x {} and {} x {}",
                                 q_grad.rows, q_grad.cols, s.rows, s.cols, size.rows, size.inner,
                                 size.columns, size.inner));
}

void DenseGradW::State::set_taken(const Csr<float>& taken) {
  DensePass::Selection& s = selection();
  s.taken_words.resize(pass.all.size());
  for (std::size_t t = 0; t < s.taken_words.size(); ++t)
    s.taken_words[t].assign(std::size_t(std::ssize(pass.rounds) * s.words_per_round[t]), 0);
  const std::int64_t column_rounds = plan.pass().rounds.columns;
  for (std::int32_t row = 0; row < taken.block_rows(); ++row)
    for (std::int64_t i = taken.row_begin[std::size_t(row)];
         i < taken.row_begin[std::size_t(row) + 1]; ++i) {
      const BlockHome &r = row_homes[std::size_t(row)],
                      &c = column_homes[std::size_t(taken.col[std::size_t(i)])];
      const Cell cell{r.part, 0, c.part, 0};
      const auto t = std::size_t(pass.map.tile(cell).value);
      const std::int64_t number = r.round * column_rounds + c.round;
      const auto columns = pass.blocks_of(pass.rounds[std::size_t(number)], cell).second;
      const std::int64_t bit = r.inside * columns + c.inside;
      s.taken_words[t][std::size_t(number * s.words_per_round[t] + bit / 32)] |= 1U << (bit % 32);
    }
}

// Throws Error{CheckFailed} if the memory of a tile changed between two steps of the last run.
void DenseGradW::State::check_memory(const PassOptions& options) const {
  if (options.self_check == nullptr || own.damage().slots == 0) return;
  const verify::MemoryDamage damage = internal::memory_damage({own.damage()});
  options.self_check->damaged = damage.slots;
  options.self_check->first_damage = damage.first;
  throw Error(ErrorCode::CheckFailed,
              fmt::format("self-check: search for the largest gradients: {} changed between two "
                          "steps; the places may be wrong",
                          damage.first));
}

bool DenseGradW::State::run(RunSeries& series, const PassOptions& options,
                            LargestGradients& found) {
  const bool finished = series.run([&](const PassOptions& own_options, device::Ledger& ledger) {
    return own.run(own_options, ledger, arrays);
  });
  if (!finished) return false;
  check_memory(options);
  ++found.runs;
  const std::int64_t count = std::ssize(pass.all);
  found.upload += Bytes(count * std::int64_t(sizeof(SelectionRequest)));
  found.download += Bytes(
      count * std::int64_t(sizeof(SelectionHeader) + std::size_t(plan.keep) * sizeof(ScoredPlace)));
  return true;
}

// Appends the lists to the candidates. A list that is not full is the last of its tile; the place
// after which a full one goes on is its worst.
bool DenseGradW::State::read_lists(RunSeries& series, const PassOptions& options,
                                   LargestGradients& found) {
  if (!run(series, options, found)) return false;
  DensePass::Selection& s = selection();
  for (std::size_t t = 0; t < pass.all.size(); ++t) {
    if (s.requests[t].searches == 0) continue;
    const std::byte* const memory = pass.engine.view(s.best[t]).data;
    const auto& header = *reinterpret_cast<const SelectionHeader*>(memory);
    const auto* const places =
        reinterpret_cast<const ScoredPlace*>(memory + sizeof(SelectionHeader));
    candidates.insert(candidates.end(), places, places + header.count);
    s.requests[t].searches = header.count == plan.keep ? 1 : 0;
    s.requests[t].goes_on = 1;
    if (header.count > 0) s.requests[t].after = places[header.count - 1];
  }
  return true;
}

// Keeps the best k candidates, and asks only tiles whose worst place is among them to go on.
bool DenseGradW::State::is_complete(std::int64_t k) {
  const bool has_enough = std::ssize(candidates) >= k;
  if (has_enough) {
    std::nth_element(candidates.begin(), candidates.begin() + k - 1, candidates.end(), is_better);
    candidates.resize(std::size_t(k));
  }
  bool complete = true;
  for (SelectionRequest& request : selection().requests) {
    if (has_enough) {
      request.threshold = candidates.back().score;
      if (is_better(candidates.back(), request.after)) request.searches = 0;
    }
    complete = complete && request.searches == 0;
  }
  return complete;
}

bool DenseGradW::State::choose(std::int64_t k, std::string_view name, const PassOptions& options,
                               LargestGradients& found) {
  selection().requests.assign(pass.all.size(), {});
  candidates.clear();
  RunSeries series(options, found.ledger);
  do {
    if (!read_lists(series, options, found)) return false;
  } while (!is_complete(k));
  std::sort(candidates.begin(), candidates.end(),
            [](const ScoredPlace& a, const ScoredPlace& b) { return a.place < b.place; });
  for (const ScoredPlace& best : candidates) {
    const BlockAt at{std::int32_t(best.place / std::uint64_t(block_columns())),
                     std::int32_t(best.place % std::uint64_t(block_columns()))};
    if (!std::isfinite(best.score))
      throw Error(ErrorCode::BadInput,
                  fmt::format("growth of blocks: {}: the gradient in block row {}, block column {} "
                              "is not finite",
                              name, at.row, at.col));
    found.places.push_back(at);
  }
  return true;
}

DenseGradW::DenseGradW(const planner::DenseGradWPlan& plan, const device::Machine& machine,
                       device::ExchangeMode mode, Executor& executor)
    : state_(std::make_unique<State>(plan, machine, mode, executor)) {}
DenseGradW::~DenseGradW() = default;
DenseGradW::DenseGradW(DenseGradW&&) noexcept = default;

device::MemoryUse DenseGradW::memory() const { return state_->own.memory(); }
const Program& DenseGradW::program() const { return state_->own.program(); }

template <class T>
bool DenseGradW::largest(const Csr<float>& taken, std::int64_t k, codelets::BlockScore score,
                         MatrixView<const T> q_grad, MatrixView<const T> s,
                         const PassOptions& options, LargestGradients& found,
                         std::string_view name) {
  State& state = *state_;
  state.check_operands<T>(q_grad, s, name);
  state.check(taken, k, name);
  found = {};
  if (k == 0) return true;
  state.selection().score = score;
  state.arrays = {internal::contiguous<T>(q_grad.transposed(), state.left),
                  internal::contiguous<T>(s, state.right),
                  {}};
  state.set_taken(taken);
  return verify::run_and_repair(options, [&](const PassOptions& once) {
    found = {};
    for (const auto& words : state.selection().taken_words)
      found.upload += Bytes(std::ssize(std::as_bytes(std::span(words))));
    return state.choose(k, name, once, found);
  });
}

DenseGradW search_for(const Problem& problem, std::int64_t k, const device::Machine& machine,
                      device::ExchangeMode mode, Executor& executor) {
  const planner::DenseGradWResult made =
      planner::plan_dense_grad_w(problem, machine, {.places = k});
  if (!made.plan) throw Error(ErrorCode::NoSolution, made.reason);
  return {*made.plan, machine, mode, executor};
}

#define TESSERA_LARGEST(T)                                                                        \
  template bool DenseGradW::largest(const Csr<float>&, std::int64_t, codelets::BlockScore,        \
                                    MatrixView<const T>, MatrixView<const T>, const PassOptions&, \
                                    LargestGradients&, std::string_view);
TESSERA_LARGEST(float)
TESSERA_LARGEST(Half)
TESSERA_LARGEST(BFloat16)
#undef TESSERA_LARGEST

}  // namespace tessera::runtime
