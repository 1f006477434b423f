#include "tessera/runtime/block_attention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/sparse/block_stats.hpp"
#include "tessera/sparse/row_values.hpp"

namespace tessera::runtime {
namespace {

const Problem& checked(const Problem& problem) {
  check_problem(problem);
  if (problem.grad_a && problem.grad_w) return problem;
  throw_invalid("attention: the problem has no GradA or no GradW; it needs both");
}

// Throws Error{InvalidArgument} if a query would attend to a key that is only padding of the last
// block: its score is 0, which is not nothing.
void check_padding(const Problem& problem, std::span<const sparse::CheckedCsr<float>> masks) {
  const std::int64_t queries = problem.size.x, keys = problem.size.y;
  for (std::size_t g = 0; g < masks.size(); ++g) {
    const sparse::Csr<float>& mask = *masks[g];
    for (std::int64_t query = 0; query < std::min(queries, mask.rows); ++query)
      sparse::for_each_in_row(mask, query, [&](std::size_t value, std::int64_t key) {
        if (mask.values[value] != 0 && key >= keys)
          throw_invalid(
              fmt::format("attention: the mask of group {} keeps key {} for query {}; the problem "
                          "has keys 0..{}",
                          g, key, query, keys - 1));
      });
  }
}

// Returns the options of a layer whose values stay in the buckets of one layout, on the same tiles
// before and after every pass: with a dense R, travelling operands in GradW or a layout of its own
// for some passes, they would have to move between programs.
planner::Options with_values_at_home(planner::Options options) {
  const auto refuse = [](const std::string& what) {
    throw_invalid("attention: planConstraints: " + what +
                  ", so values would not stay in the buckets of the mask; omit it");
  };
  planner::PlanConstraints& c = options.constraints;
  if (c.use_dense.value_or(false)) refuse("useDense is true");
  if (!c.grad_w_exchange_buckets.value_or(true)) refuse("exchange.gradWExchangeBuckets is false");
  c.use_dense = false;
  c.grad_w_exchange_buckets = true;
  options.per_pass_plans = false;
  return options;
}

planner::Plan plan_for_masks(const Problem& problem,
                             std::span<const sparse::CheckedCsr<float>> masks,
                             const device::Machine& machine, const planner::Options& options) {
  check_padding(problem, masks);
  const PatternStats stats = sparse::stats_of_groups(masks);
  return planner::plan_or_throw(problem, machine, with_values_at_home(options), &stats);
}

// Returns the cycles of steps of these phases.
Cycles cycles_of(const device::Ledger& ledger, Cycles device::PhaseTotal::* part) {
  Cycles sum;
  for (const device::PhaseTotal& phase : ledger.phases()) sum += phase.*part;
  return sum;
}

}  // namespace

Cycles AttentionCost::total() const {
  Cycles sum;
  for (const AttentionStep& step : steps) sum += step.ledger.total();
  return sum;
}

std::string AttentionCost::table() const {
  std::string text = fmt::format("{:<28}{:>12}{:>12}{:>12}{:>12}\n", "program", "compute",
                                 "exchange", "rest", "all");
  Cycles compute, exchange, all;
  const auto row = [&](std::string_view name, Cycles c, Cycles e, Cycles a) {
    text += fmt::format("{:<28}{:>12}{:>12}{:>12}{:>12}\n", name, c.value, e.value,
                        (a - c - e).value, a.value);
  };
  for (const AttentionStep& step : steps) {
    const Cycles c = cycles_of(step.ledger, &device::PhaseTotal::compute),
                 e = cycles_of(step.ledger, &device::PhaseTotal::exchange);
    row(step.name, c, e, step.ledger.total());
    compute += c;
    exchange += e;
    all += step.ledger.total();
  }
  row("all", compute, exchange, all);
  return text;
}

struct BlockAttention::State {
  State(const Problem& p, std::span<const sparse::Csr<float>> masks,
        const std::vector<sparse::CheckedCsr<float>>& weights, float scale,
        const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
        const planner::Options& options)
      : problem(checked(p)),
        plan(plan_for_masks(problem, weights, machine, options)),
        layer(problem, plan, machine, mode, executor) {
    if (auto misfit = layer.set_weights(weights))
      throw Error(ErrorCode::LimitExceeded, "attention: the mask: " + misfit->message);
    BlockSoftmaxOptions own{.scale = scale, .homes = bucket_homes(layer, problem, plan, machine)};
    own.resident = internal::resident_bytes(plan, problem.data_type, machine) -
                   Bytes(own.homes.per_tile * bytes_of(problem.data_type));
    softmax.emplace(masks, problem.data_type, machine, mode, executor, own);
    for (std::vector<float>* values : {&p_values, &gradient})
      values->resize(std::size_t(layer.values()));
  }

  void check(const PassOptions& options) const {
    const TileOptions own = tile_options(options);
    if (own.fault || own.tiles != nullptr)
      throw_invalid(
          "attention: a fault and figures of tiles belong to one program; give them to the layer "
          "or the softmax");
  }

  Cycles planned(Pass pass) const { return plan.cost.find(pass)->cycles(); }

  // Gives the layer other values of the masks.
  void set_values(std::span<const float> values) {
    std::int64_t first = 0;
    for (std::int64_t g = 0; g < problem.size.g; ++g) {
      const std::int64_t count = std::ssize(layer.weights(g).values);
      layer.set_values(values.subspan(std::size_t(first), std::size_t(count)), g);
      first += count;
    }
  }

  // Runs a program and appends its cost. `run` takes the ledger.
  template <class Run>
  bool step(AttentionCost& cost, std::string_view name, const Program& program, Run&& run) {
    AttentionStep& made = cost.steps.emplace_back(AttentionStep{name, {}, &program});
    return run(made.ledger);
  }

  Problem problem;
  planner::Plan plan;
  FullyConnected layer;
  std::optional<BlockSoftmax> softmax;
  std::vector<float> p_values, gradient;
  bool has_run = false;
  OneCaller caller;
};

BlockAttention::BlockAttention(const Problem& problem, std::span<const sparse::Csr<float>> masks,
                               float scale, const device::Machine& machine,
                               device::ExchangeMode mode, Executor& executor,
                               planner::Options options)
    : state_(std::make_unique<State>(problem, masks,
                                     sparse::checked(std::vector(masks.begin(), masks.end())),
                                     scale, machine, mode, executor, options)) {}
BlockAttention::~BlockAttention() = default;
BlockAttention::BlockAttention(BlockAttention&&) noexcept = default;

template <class T>
bool BlockAttention::forward(MatrixView<const T> q, MatrixView<const T> k, MatrixView<const T> v,
                             MatrixView<T> o, const PassOptions& options, AttentionCost& cost) {
  State& s = *state_;
  const auto call = s.caller.enter("attention forward");
  s.check(options);
  s.has_run = false;
  cost = {};
  const bool finished =
      s.step(cost, "scores, Q * K^T at the mask", s.layer.program(Pass::GradW),
             [&](device::Ledger& ledger) {
               return s.layer.grad_w<T>(q, k, std::span<float>(s.p_values), options, ledger);
             }) &&
      s.step(cost, "softmax", s.softmax->program(), [&](device::Ledger& ledger) {
        return s.softmax->softmax(s.p_values, s.p_values, options, ledger);
      });
  if (!finished) return false;
  s.set_values(s.p_values);
  s.has_run =
      s.step(cost, "output, P * V", s.layer.program(Pass::Fwd),
             [&](device::Ledger& ledger) { return s.layer.forward<T>(v, o, options, ledger); });
  return s.has_run;
}

template <class T>
bool BlockAttention::backward(MatrixView<const T> q, MatrixView<const T> k, MatrixView<const T> v,
                              MatrixView<const T> o_grad, MatrixView<T> q_grad,
                              MatrixView<T> k_grad, MatrixView<T> v_grad,
                              const PassOptions& options, AttentionCost& cost) {
  State& s = *state_;
  const auto call = s.caller.enter("attention backward");
  s.check(options);
  if (!s.has_run) throw_invalid("attention: call forward before backward");
  cost = {};
  const Program& grad_a = s.layer.program(Pass::GradA);
  s.set_values(s.p_values);
  bool finished = s.step(cost, "gradient of V, P^T * dO", grad_a, [&](device::Ledger& ledger) {
    return s.layer.grad_a<T>(o_grad, v_grad, options, ledger);
  });
  finished = finished && s.step(cost, "gradient of P, at the mask", s.layer.program(Pass::GradW),
                                [&](device::Ledger& ledger) {
                                  return s.layer.grad_w<T>(o_grad, v, std::span<float>(s.gradient),
                                                           options, ledger);
                                });
  finished = finished && s.step(cost, "gradient of the softmax", s.softmax->gradient_program(),
                                [&](device::Ledger& ledger) {
                                  return s.softmax->gradient(s.p_values, s.gradient, s.gradient,
                                                             options, ledger);
                                });
  if (!finished) return false;
  s.set_values(s.gradient);
  return s.step(cost, "gradient of Q, dS * K", s.layer.program(Pass::Fwd),
                [&](device::Ledger& ledger) {
                  return s.layer.forward<T>(k, q_grad, options, ledger);
                }) &&
         s.step(cost, "gradient of K, dS^T * Q", grad_a, [&](device::Ledger& ledger) {
           return s.layer.grad_a<T>(q, k_grad, options, ledger);
         });
}

Cycles BlockAttention::planned_forward() const {
  return state_->planned(Pass::GradW) + state_->softmax->planned() + state_->planned(Pass::Fwd);
}

Cycles BlockAttention::planned_backward() const {
  return state_->planned(Pass::GradW) + state_->softmax->gradient_planned() +
         state_->planned(Pass::Fwd) + 2 * state_->planned(Pass::GradA);
}

const planner::Plan& BlockAttention::plan() const { return state_->plan; }
const FullyConnected& BlockAttention::layer() const { return state_->layer; }
const BlockSoftmax& BlockAttention::softmax() const { return *state_->softmax; }
Bytes BlockAttention::high_water() const {
  return std::max(state_->layer.high_water(), state_->softmax->high_water());
}

#define TESSERA_ATTENTION(T)                                                                    \
  template bool BlockAttention::forward(MatrixView<const T>, MatrixView<const T>,               \
                                        MatrixView<const T>, MatrixView<T>, const PassOptions&, \
                                        AttentionCost&);                                        \
  template bool BlockAttention::backward(                                                       \
      MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, MatrixView<const T>,       \
      MatrixView<T>, MatrixView<T>, MatrixView<T>, const PassOptions&, AttentionCost&);
TESSERA_ATTENTION(float)
TESSERA_ATTENTION(Half)
TESSERA_ATTENTION(BFloat16)
#undef TESSERA_ATTENTION

}  // namespace tessera::runtime
