#include "tessera/runtime/matmul.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/one_caller.hpp"
#include "tessera/runtime/internal/joined_runs.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/transpose_pass.hpp"
#include "tessera/sparse/matmul.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::runtime {

using Transposition = internal::OwnPass<internal::TransposePass>;

namespace {

const planner::MatMulPlan& checked_plan(const planner::MatMulPlan& plan) {
  check_matmul(plan.problem);
  return plan;
}

}  // namespace

struct MatMul::State {
  State(const planner::MatMulPlan& made, const device::Machine& machine, device::ExchangeMode mode,
        Executor& executor)
      : plan(made), layer(layer_of(made.problem), made.layer, machine, mode, executor) {
    const Bytes buckets = internal::resident_bytes(plan.layer, plan.problem.data_type, machine);
    if (plan.move) move.emplace(machine, mode, executor, *plan.move, buckets);
  }

  template <class T>
  bool run(MatrixView<const T> dense, MatrixView<T> result, const PassOptions& options,
           device::Ledger& ledger);
  template <class T>
  bool run_moved(MatrixView<const T> dense, MatrixView<T> result, const PassOptions& options,
                 device::Ledger& ledger);

  planner::MatMulPlan plan;
  FullyConnected layer;
  std::optional<Transposition> move;
  OneCaller caller;
};

// Moves the dense operand and runs the pass. The caller's options are those of both.
template <class T>
bool MatMul::State::run_moved(MatrixView<const T> dense, MatrixView<T> result,
                              const PassOptions& options, device::Ledger& ledger) {
  Matrix<T> turned;
  internal::RunSeries series(options, ledger);
  bool finished = series.run([&](const PassOptions& own, device::Ledger& of_run) {
    return internal::transpose_operand<T>(*move, dense, turned, own, of_run);
  });
  series.forget_stages();
  if (finished) {
    const ByLayer<const T> in(std::as_const(turned).view(), !is_dense_by_column(plan.problem),
                              plan.problem.groups);
    finished = series.run([&](const PassOptions& own, device::Ledger& of_run) {
      return layer.forward<T>(in.view(), result, own, of_run);
    });
  }
  if (finished && options.self_check != nullptr && move->damage().slots > 0) {
    const verify::MemoryDamage damage = internal::memory_damage({move->damage()});
    options.self_check->damaged += damage.slots;
    options.self_check->first_damage = damage.first;
  }
  return finished;
}

template <class T>
bool MatMul::State::run(MatrixView<const T> dense, MatrixView<T> result, const PassOptions& options,
                        device::Ledger& ledger) {
  const auto call = caller.enter("multiply");
  const MatMulProblem& problem = plan.problem;
  check_operands<T>(problem, dense, result);
  ByLayer<T> out(result, is_result_by_column(problem), problem.groups);
  bool finished = false;
  if (moves_dense_operand(problem)) {
    finished = run_moved<T>(dense, out.view(), options, ledger);
  } else {
    const ByLayer<const T> in(dense, is_dense_by_column(problem), problem.groups);
    finished = layer.forward<T>(in.view(), out.view(), options, ledger);
  }
  if (finished) out.write_back();
  return finished;
}

MatMul::MatMul(const planner::MatMulPlan& plan, const device::Machine& machine,
               device::ExchangeMode mode, Executor& executor)
    : state_(std::make_unique<State>(checked_plan(plan), machine, mode, executor)) {}
MatMul::~MatMul() = default;
MatMul::MatMul(MatMul&&) noexcept = default;

std::optional<partitioner::Misfit> MatMul::set_sparse(std::span<const sparse::Csr<float>> operands,
                                                      const partitioner::EncodeOptions& options) {
  const std::vector<sparse::Csr<float>> weights =
      sparse::matmul_weights(state_->plan.problem, operands);
  return state_->layer.set_weights(sparse::checked(weights), options);
}

std::optional<partitioner::Misfit> MatMul::set_sparse(const sparse::Csr<float>& operand,
                                                      const partitioner::EncodeOptions& options) {
  return set_sparse(std::span(&operand, 1), options);
}

template <class T>
bool MatMul::multiply(MatrixView<const T> dense, MatrixView<T> result, const PassOptions& options,
                      device::Ledger& ledger) {
  return verify::run_and_repair(options, [&](const PassOptions& once) {
    return state_->run<T>(dense, result, once, ledger);
  });
}

const planner::MatMulPlan& MatMul::plan() const { return state_->plan; }
FullyConnected& MatMul::layer() { return state_->layer; }
const FullyConnected& MatMul::layer() const { return state_->layer; }

Bytes MatMul::high_water() const {
  Bytes most = state_->layer.high_water();
  if (state_->move) most = std::max(most, state_->move->high_water());
  return most;
}

#define TESSERA_MATMUL_RUNS(T)                                                           \
  template bool MatMul::multiply(MatrixView<const T>, MatrixView<T>, const PassOptions&, \
                                 device::Ledger&);
TESSERA_MATMUL_RUNS(float)
TESSERA_MATMUL_RUNS(Half)
TESSERA_MATMUL_RUNS(BFloat16)
#undef TESSERA_MATMUL_RUNS

}  // namespace tessera::runtime
