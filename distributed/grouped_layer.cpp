#include "tessera/distributed/grouped_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/sub_ranks.hpp"

namespace tessera::distributed {
namespace {

[[noreturn]] void refuse_call(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, message);
}

// Returns the ranks [begin, end) that have a group.
Range ranks_of(std::int64_t group, std::int64_t groups, std::int64_t ranks) {
  if (groups % ranks == 0) {
    const std::int64_t rank = group / (groups / ranks);
    return {rank, rank + 1};
  }
  if (ranks % groups != 0) return {0, ranks};
  const std::int64_t each = ranks / groups;
  return {group * each, (group + 1) * each};
}

// A group of this rank.
struct OwnGroup {
  OwnGroup(std::int64_t number, const Problem& problem, const host::HostCpu& cpu,
           Executor& executor, Communicator& all, std::vector<int> members)
      : group(number), ranks(all, std::move(members)), layer(problem, cpu, executor, ranks) {}

  std::int64_t group;
  SubRanks ranks;
  DistributedLayer layer;

  Range outputs() const { return layer.outputs().of(ranks.rank()); }
  Range inputs() const { return layer.inputs().of(ranks.rank()); }
};

void add_times(const PassTimes& more, PassTimes& all) {
  all.host += more.host;
  all.gather_seconds += more.gather_seconds;
  all.received_bytes += more.received_bytes;
}

}  // namespace

struct GroupedLayer::State {
  Problem problem;
  Communicator& ranks;
  std::vector<std::unique_ptr<OwnGroup>> own;
  std::vector<std::int64_t> groups;
  bool has_weights = false;

  void require_weights(const char* call) const {
    if (!has_weights) refuse_call(fmt::format("{}: set_weights comes first", call));
  }

  const OwnGroup& at(std::int64_t group) const {
    require_weights("a group");
    const auto found = std::ranges::find(groups, group);
    if (found == groups.end())
      refuse_call(fmt::format("group {}: rank {} has no rows of it", group, ranks.rank()));
    return *own[std::size_t(found - groups.begin())];
  }

  void check_rows(const char* call, const char* name, std::int64_t rows,
                  std::int64_t expected) const {
    if (rows != expected)
      refuse_call(fmt::format("{}: {} has {} rows; rank {} has {} of all its groups", call, name,
                              rows, ranks.rank(), expected));
  }

  bool is_stopped(const verify::RunOptions& run) const {
    if (!run.stop.stop_possible()) return false;
    const std::vector<char> wish{run.stop.stop_requested()};
    return std::ranges::any_of(gather_lists(ranks, "wishes to stop", wish),
                               [](const auto& list) { return list[0] != 0; });
  }

  // Calls pass(group, options, times) for each group of this rank.
  template <class Pass>
  bool for_each(const verify::RunOptions& run, PassTimes& times, const Pass& pass) {
    times = {};
    if (run.self_check != nullptr) *run.self_check = {};
    if (is_stopped(run)) return false;
    for (const auto& group : own) {
      verify::Checksums checksums;
      const verify::RunOptions of_group{.progress = run.progress,
                                        .self_check = run.self_check ? &checksums : nullptr,
                                        .repair = run.repair};
      PassTimes of_pass;
      try {
        [[maybe_unused]] const bool finished = pass(*group, of_group, of_pass);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::CheckFailed) throw;
        throw Error(error.code(), fmt::format("group {} on rank {}: {}", group->group, ranks.rank(),
                                              error.what()));
      }
      add_times(of_pass, times);
      if (run.self_check != nullptr && checksums.compared > 0)
        verify::add_part(checksums, *run.self_check);
    }
    return true;
  }
};

GroupedLayer::GroupedLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                           Communicator& ranks)
    : state_(new State{problem, ranks, {}, {}}) {
  check_problem(problem);
  Problem one = problem;
  one.size.g = 1;
  for (std::int64_t group = 0; group < problem.size.g; ++group) {
    const Range of_group = ranks_of(group, problem.size.g, ranks.size());
    if (ranks.rank() < of_group.begin || ranks.rank() >= of_group.end) continue;
    std::vector<int> members;
    for (std::int64_t rank = of_group.begin; rank < of_group.end; ++rank)
      members.push_back(int(rank));
    state_->groups.push_back(group);
    state_->own.push_back(
        std::make_unique<OwnGroup>(group, one, cpu, executor, ranks, std::move(members)));
  }
}

GroupedLayer::~GroupedLayer() = default;

void GroupedLayer::set_weights(std::span<const sparse::Csr<float>> weights) {
  State& s = *state_;
  if (std::ssize(weights) != s.problem.size.g)
    refuse_call(fmt::format("set_weights: there are {} matrices for {} groups", weights.size(),
                            s.problem.size.g));
  require_same(s.ranks, "set_weights", {given_problem(s.problem), given_weights(weights)});
  for (const auto& group : s.own) group->layer.set_weights(weights[std::size_t(group->group)]);
  s.has_weights = true;
}

void GroupedLayer::set_values(std::span<const float> values) {
  state_->require_weights("set_values");
  if (std::ssize(values) != this->values())
    refuse_call(fmt::format("set_values: there are {} values; this rank has {}", values.size(),
                            this->values()));
  for (const auto& group : state_->own) {
    const auto count = std::size_t(group->layer.values());
    group->layer.set_values(values.first(count));
    values = values.subspan(count);
  }
}

template <class T>
bool GroupedLayer::forward(MatrixView<const T> s, MatrixView<T> q,
                           const verify::RunOptions& options, PassTimes& times) {
  state_->require_weights("forward");
  state_->check_rows("forward", "s", s.rows, input_rows());
  state_->check_rows("forward", "q", q.rows, output_rows());
  check_no_overlap("forward", footprint("q", q), std::array{footprint("s", s)});
  std::int64_t in = 0, out = 0;
  return state_->for_each(options, times, [&](OwnGroup& group, const auto& run, PassTimes& time) {
    const Range from{in, in + group.inputs().size()}, to{out, out + group.outputs().size()};
    in = from.end;
    out = to.end;
    return group.layer.template forward<T>(s.sub(from, {0, s.cols}), q.sub(to, {0, q.cols}), {},
                                           run, time);
  });
}

template <class T>
bool GroupedLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                          const verify::RunOptions& options, PassTimes& times) {
  state_->require_weights("grad_a");
  state_->check_rows("grad_a", "q_grad", q_grad.rows, output_rows());
  state_->check_rows("grad_a", "s_grad", s_grad.rows, input_rows());
  check_no_overlap("grad_a", footprint("s_grad", s_grad), std::array{footprint("q_grad", q_grad)});
  std::int64_t in = 0, out = 0;
  return state_->for_each(options, times, [&](OwnGroup& group, const auto& run, PassTimes& time) {
    const Range from{in, in + group.outputs().size()}, to{out, out + group.inputs().size()};
    in = from.end;
    out = to.end;
    return group.layer.template grad_a<T>(q_grad.sub(from, {0, q_grad.cols}),
                                          s_grad.sub(to, {0, s_grad.cols}), {}, run, time);
  });
}

template <class T>
bool GroupedLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                          std::span<float> gradients, const verify::RunOptions& options,
                          PassTimes& times) {
  state_->require_weights("grad_w");
  state_->check_rows("grad_w", "q_grad", q_grad.rows, output_rows());
  state_->check_rows("grad_w", "s", s.rows, input_rows());
  if (std::ssize(gradients) != values())
    refuse_call(
        fmt::format("grad_w: there are {} gradients for {} values", gradients.size(), values()));
  check_no_overlap("grad_w", footprint("gradients", gradients),
                   std::array{footprint("q_grad", q_grad), footprint("s", s)});
  std::int64_t rows = 0, cols = 0;
  return state_->for_each(options, times, [&](OwnGroup& group, const auto& run, PassTimes& time) {
    const Range out{rows, rows + group.outputs().size()}, in{cols, cols + group.inputs().size()};
    rows = out.end;
    cols = in.end;
    const auto count = std::size_t(group.layer.values());
    const std::span<float> own = gradients.first(count);
    gradients = gradients.subspan(count);
    return group.layer.template grad_w<T>(q_grad.sub(out, {0, q_grad.cols}), s.sub(in, {0, s.cols}),
                                          own, host::Accumulate::No, run, time);
  });
}

template <class T>
PassTimes GroupedLayer::forward(MatrixView<const T> s, MatrixView<T> q) {
  PassTimes times;
  [[maybe_unused]] const bool finished = forward<T>(s, q, verify::RunOptions(), times);
  return times;
}

template <class T>
PassTimes GroupedLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  PassTimes times;
  [[maybe_unused]] const bool finished = grad_a<T>(q_grad, s_grad, verify::RunOptions(), times);
  return times;
}

template <class T>
PassTimes GroupedLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                               std::span<float> gradients) {
  PassTimes times;
  [[maybe_unused]] const bool finished =
      grad_w<T>(q_grad, s, gradients, verify::RunOptions(), times);
  return times;
}

const std::vector<std::int64_t>& GroupedLayer::groups() const { return state_->groups; }
Range GroupedLayer::outputs(std::int64_t group) const { return state_->at(group).outputs(); }
Range GroupedLayer::inputs(std::int64_t group) const { return state_->at(group).inputs(); }

const sparse::Csr<float>& GroupedLayer::weights(std::int64_t group) const {
  return state_->at(group).layer.weights();
}

std::int64_t GroupedLayer::output_rows() const {
  state_->require_weights("output_rows");
  std::int64_t rows = 0;
  for (const auto& group : state_->own) rows += group->outputs().size();
  return rows;
}

std::int64_t GroupedLayer::input_rows() const {
  state_->require_weights("input_rows");
  std::int64_t rows = 0;
  for (const auto& group : state_->own) rows += group->inputs().size();
  return rows;
}

std::int64_t GroupedLayer::values() const {
  state_->require_weights("values");
  std::int64_t count = 0;
  for (const auto& group : state_->own) count += group->layer.values();
  return count;
}

#define TESSERA_GROUPED_LAYER_FOR(T)                                                             \
  template PassTimes GroupedLayer::forward(MatrixView<const T>, MatrixView<T>);                  \
  template PassTimes GroupedLayer::grad_a(MatrixView<const T>, MatrixView<T>);                   \
  template PassTimes GroupedLayer::grad_w(MatrixView<const T>, MatrixView<const T>,              \
                                          std::span<float>);                                     \
  template bool GroupedLayer::forward(MatrixView<const T>, MatrixView<T>,                        \
                                      const verify::RunOptions&, PassTimes&);                    \
  template bool GroupedLayer::grad_a(MatrixView<const T>, MatrixView<T>,                         \
                                     const verify::RunOptions&, PassTimes&);                     \
  template bool GroupedLayer::grad_w(MatrixView<const T>, MatrixView<const T>, std::span<float>, \
                                     const verify::RunOptions&, PassTimes&)
TESSERA_GROUPED_LAYER_FOR(float);
TESSERA_GROUPED_LAYER_FOR(Half);
TESSERA_GROUPED_LAYER_FOR(BFloat16);
#undef TESSERA_GROUPED_LAYER_FOR

}  // namespace tessera::distributed
