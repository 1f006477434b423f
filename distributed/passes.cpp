#include <algorithm>
#include <functional>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/distributed/internal/rank_state.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/tree_sum.hpp"

namespace tessera::distributed {
namespace {

template <class T>
MatrixView<T> rows_in(MatrixView<T> view, Range rows) {
  return view.sub(rows, {0, view.cols});
}

template <class T>
std::span<T> numbers_in(std::span<T> all, Range range) {
  return all.subspan(std::size_t(range.begin), std::size_t(range.size()));
}

// Multiplies by the derivative of a ReLU.
template <class T>
void derive(MatrixView<const T> where_positive, MatrixView<T> results) {
  for (std::int64_t r = 0; r < results.rows; ++r)
    for (std::int64_t c = 0; c < results.cols; ++c)
      if (!(float(where_positive(r, c)) > 0)) results(r, c) = T(0.0f);
}

}  // namespace

// Calls body(index of a group, options, times) for each group, until it or a stop ends the pass.
template <class Body>
bool RankLayer::State::run_pass(const layer::PassOptions& run, PassTimes& times, const Body& body) {
  const Stopwatch watch;
  const Traffic before = ranks->traffic();
  times = {};
  if (run.self_check != nullptr) *run.self_check = {};
  layer::PassOptions of_groups = run;
  std::int64_t steps = 0;  // of all groups
  if (run.progress)
    of_groups.progress = [&](const verify::Progress& at) { run.progress({at.step, steps++}); };
  bool goes_on = true;
  for (std::size_t g = 0; goes_on && g < groups.size(); ++g)
    goes_on = run_group(g, of_groups, times.host, body);
  const Traffic& after = ranks->traffic();
  times.host.seconds = watch.seconds();
  times.gather_seconds = after.wait_seconds - before.wait_seconds;
  times.received_bytes = after.received_bytes - before.received_bytes;
  return goes_on;
}

template <class Body>
bool RankLayer::State::run_group(std::size_t g, const layer::PassOptions& run,
                                 host::HostTimes& times, const Body& body) {
  // Ranks that all share the panels of a pass ask before each of them.
  const bool asks_inside = problem.size.g == 1 && cut.replicas == 1 && !splits_batch();
  if (!asks_inside && run.stop.stop_possible() &&
      any_rank(*ranks, "wishes to stop", run.stop.stop_requested()))
    return false;
  layer::PassOptions of_group = run;
  if (!asks_inside) of_group.stop = {};
  try {
    return body(g, of_group, times);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::CheckFailed || problem.size.g == 1) throw;
    throw Error(error.code(), fmt::format("group {}: {}", parts[g].group, error.what()));
  }
}

// Writes the gradients of all groups, or adds those of the whole batch to the caller's. With leaves
// nothing is written if a rank fails.
template <class T>
bool RankLayer::State::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                              std::span<float> gradients, const layer::PassOptions& options,
                              PassTimes& times) {
  const bool adds = options.accumulate == layer::Accumulate::Yes;
  // A sum of leaves needs other ranks, which may fail before it is complete.
  const bool is_aside = adds || splits_batch();
  if (is_aside) sums.resize(gradients.size());
  const std::span<float> to = is_aside ? std::span<float>(sums) : gradients;
  const auto pass = [&](std::size_t g, const auto& of_group, auto& seconds) {
    const auto dq = rows_in(q_grad, outputs[g]);
    const auto in = rows_in(s, inputs[g]);
    const std::span<float> own = numbers_in(to, values[g]);
    if (!splits_batch()) return groups[g]->rows().gradients(dq, in, own, of_group, seconds);
    add_leaves<T>(*groups[g], dq, in, own, of_group, seconds);
    return true;
  };
  const bool finished = run_pass(options, times, pass);
  if (adds && finished)
    std::transform(to.begin(), to.end(), gradients.begin(), gradients.begin(), std::plus<>());
  else if (is_aside && finished)
    std::ranges::copy(to, gradients.begin());
  return finished;
}

// Adds up the gradients of the leaves of all ranks.
template <class T>
void RankLayer::State::add_leaves(internal::GridPart& group, MatrixView<const T> q_grad,
                                  MatrixView<const T> s, std::span<float> gradients,
                                  const layer::PassOptions& run, host::HostTimes& times) {
  const std::int64_t first = batch.begin;
  const auto write_leaf = [&](std::int64_t leaf, std::span<float> sums_of_leaf) {
    const Range all = leaf_columns(cut, problem.size.z, leaf);
    const Range own{all.begin - first, all.end - first};
    group.rows().gradients(q_grad.sub({0, q_grad.rows}, own), s.sub({0, s.rows}, own), sums_of_leaf,
                           run, times);
  };
  tree_sum(*ranks, cut.leaves, gradients, write_leaf, memory);
}

bool RankLayer::State::compute(Pass pass, const layer::Operands& operands,
                               const layer::PassOptions& options, PassTimes& times) {
  const DefaultFloatMode mode;
  return with_type(problem.data_type,
                   [&]<class T>(T) { return compute_as<T>(pass, operands, options, times); });
}

template <class T>
bool RankLayer::State::compute_as(Pass pass, const layer::Operands& operands,
                                  const layer::PassOptions& options, PassTimes& times) {
  const auto in = operands.in.as<T>();
  const auto out = operands.out.as<T>();
  switch (pass) {
    case Pass::Fwd:
      return run_pass(options, times, [&](std::size_t g, auto& of_group, auto& seconds) {
        if (!options.bias.empty()) of_group.bias = numbers_in(options.bias, outputs[g]);
        return groups[g]->rows().product(rows_in(in, inputs[g]), rows_in(out, outputs[g]), of_group,
                                         seconds);
      });
    case Pass::GradA: {
      const bool finished =
          run_pass(options, times, [&](std::size_t g, const auto& of_group, auto& seconds) {
            return groups[g]->columns().product(rows_in(in, outputs[g]), rows_in(out, inputs[g]),
                                                of_group, seconds);
          });
      if (!options.where_positive.empty()) derive(options.where_positive.as<T>(), out);
      return finished;
    }
    case Pass::GradW:
      break;
  }
  return grad_w(in, operands.in_s.as<T>(), operands.gradients, options, times);
}

}  // namespace tessera::distributed
