#include "tessera/runtime/mask_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/planner/matmul.hpp"
#include "tessera/runtime/block_softmax.hpp"
#include "tessera/runtime/internal/keep_pass.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/transpose_pass.hpp"
#include "tessera/runtime/internal/values_at_home.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::runtime {

using KeepPass = internal::OwnPass<internal::KeepPass>;
using Transposition = internal::OwnPass<internal::TransposePass>;

Problem layer_of(const MaskProductProblem& p) {
  return {.size = {p.groups, p.m, p.n, p.k},
          .block = p.block,
          .density = p.density,
          .data_type = p.data_type,
          .partials_type = p.partials_type,
          .grad_w = true};
}

namespace {

Problem checked_layer(const MaskProductProblem& p) {
  const Problem layer = layer_of(p);
  check_problem(layer);
  return layer;
}

}  // namespace

struct MaskProduct::State {
  State(const MaskProductProblem& p, const device::Machine& of, device::ExchangeMode in,
        Executor& on, const planner::Options& options)
      : problem(p),
        of_layer(checked_layer(p)),
        plan(planner::plan_or_throw(of_layer, of,
                                    internal::values_at_home(options, "product at a mask"))),
        machine(of),
        mode(in),
        executor(on),
        layer(of_layer, plan, machine, mode, executor) {
    const Bytes buckets = internal::resident_bytes(plan, p.data_type, machine);
    const auto add = [&](std::optional<Transposition>& move, MatrixShape stored) {
      move.emplace(machine, mode, executor,
                   planner::plan_transpose(p.groups, stored, p.data_type, machine), buckets);
    };
    if (p.transpose_lhs) add(move_a, {p.k, p.m});
    if (!p.transpose_rhs) add(move_b, {p.k, p.n});
  }

  // Returns an operand in the order of the layer, transposed on the machine if it must be.
  template <class T>
  bool in_order(std::optional<Transposition>& move, MatrixView<const T> given, Matrix<T>& turned,
                MatrixView<const T>& view, const PassOptions& options, device::Ledger& ledger) {
    view = given;
    if (!move) return true;
    device::Ledger own;
    if (!internal::transpose_operand<T>(*move, given, turned, options, own)) return false;
    ledger.steps.insert(ledger.steps.end(), own.steps.begin(), own.steps.end());
    view = std::as_const(turned).view();
    return true;
  }

  template <class T>
  void check(MatrixView<const T> a, MatrixView<const T> b, std::span<float> values,
             const PassOptions& options) const;

  MaskProductProblem problem;
  Problem of_layer;
  planner::Plan plan;
  device::Machine machine;
  device::ExchangeMode mode;
  Executor& executor;
  FullyConnected layer;
  std::optional<Transposition> move_a, move_b;
  std::optional<KeepPass> keep;
  std::vector<bool> kept;  // [values]; empty: all
  OneCaller caller;
};

template <class T>
void MaskProduct::State::check(MatrixView<const T> a, MatrixView<const T> b,
                               std::span<float> values, const PassOptions& options) const {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, "product at a mask: " + what);
  };
  if (data_type_of<T>() != problem.data_type)
    refuse(fmt::format("operands are {} but the product is {}", to_string(data_type_of<T>()),
                       to_string(problem.data_type)));
  const auto check_shape = [&](const char* name, MatrixView<const T> view, std::int64_t rows,
                               std::int64_t cols) {
    if (view.rows != problem.groups * rows || view.cols != cols)
      refuse(fmt::format("{} is {} x {}; it must be {} x {}", name, view.rows, view.cols,
                         problem.groups * rows, cols));
  };
  const MaskProductProblem& p = problem;
  check_shape("a", a, p.transpose_lhs ? p.k : p.m, p.transpose_lhs ? p.m : p.k);
  check_shape("b", b, p.transpose_rhs ? p.n : p.k, p.transpose_rhs ? p.k : p.n);
  const TileOptions own = tile_options(options);
  if (own.fault || own.tiles != nullptr)
    refuse("a fault and figures of tiles belong to one program; give them to the layer");
  check_no_overlap("product at a mask", footprint("values", values),
                   std::array{footprint("a", a), footprint("b", b)});
}

MaskProduct::MaskProduct(const MaskProductProblem& problem, const device::Machine& machine,
                         device::ExchangeMode mode, Executor& executor, planner::Options options)
    : state_(std::make_unique<State>(problem, machine, mode, executor, options)) {}
MaskProduct::~MaskProduct() = default;
MaskProduct::MaskProduct(MaskProduct&&) noexcept = default;

std::optional<partitioner::Misfit> MaskProduct::set_mask(
    std::span<const sparse::Csr<float>> masks) {
  State& s = *state_;
  const auto call = s.caller.enter("set_mask");
  if (auto misfit = s.layer.set_weights(sparse::checked(std::vector(masks.begin(), masks.end()))))
    return misfit;
  s.keep.reset();
  s.kept.clear();
  std::vector<bool> kept;
  for (const sparse::Csr<float>& mask : masks)
    for (const float value : mask.values) kept.push_back(value != 0);
  if (std::find(kept.begin(), kept.end(), false) == kept.end()) return std::nullopt;
  const ValueHomes homes = bucket_homes(s.layer, s.of_layer, s.plan, s.machine);
  const Bytes words = internal::resident_bytes(s.plan, s.problem.data_type, s.machine) -
                      Bytes(homes.per_tile * bytes_of(s.problem.data_type));
  s.keep.emplace(s.machine, s.mode, s.executor, masks, homes, s.problem.data_type, words);
  s.kept = std::move(kept);
  return std::nullopt;
}

std::optional<partitioner::Misfit> MaskProduct::set_mask(const sparse::Csr<float>& mask) {
  return set_mask({&mask, 1});
}

template <class T>
bool MaskProduct::multiply(MatrixView<const T> a, MatrixView<const T> b, std::span<float> values,
                           const PassOptions& options, device::Ledger& ledger) {
  if (options.repair)
    return verify::run_and_repair(
        options, [&](const PassOptions& once) { return multiply<T>(a, b, values, once, ledger); });
  State& s = *state_;
  const auto call = s.caller.enter("product at a mask");
  s.check<T>(a, b, values, options);
  ledger.steps.clear();
  Matrix<T> turned_a, turned_b;
  MatrixView<const T> left, right;
  device::Ledger own;
  if (!s.in_order<T>(s.move_a, a, turned_a, left, options, ledger) ||
      !s.in_order<T>(s.move_b, b, turned_b, right, options, ledger) ||
      !s.layer.grad_w<T>(left, right, values, options, own))
    return false;
  ledger.steps.insert(ledger.steps.end(), own.steps.begin(), own.steps.end());
  if (!s.keep) return true;
  PassOptions of_keep = options;
  of_keep.self_check = nullptr;  // its outcome is that of GradW; the zeros are compared here
  if (!s.keep->run(of_keep, own, values)) return false;
  (*s.keep)->finish(values);
  ledger.steps.insert(ledger.steps.end(), own.steps.begin(), own.steps.end());
  for (std::size_t i = 0; options.self_check != nullptr && i < values.size(); ++i)
    if (!s.kept[i] && values[i] != 0)
      throw Error(
          ErrorCode::CheckFailed,
          fmt::format("self-check: value {} is {}; the mask does not keep it", i, values[i]));
  return true;
}

std::int64_t MaskProduct::values() const { return state_->layer.values(); }
const FullyConnected& MaskProduct::layer() const { return state_->layer; }

#define TESSERA_MASK_PRODUCT(T)                                                                   \
  template bool MaskProduct::multiply(MatrixView<const T>, MatrixView<const T>, std::span<float>, \
                                      const PassOptions&, device::Ledger&);
TESSERA_MASK_PRODUCT(float)
TESSERA_MASK_PRODUCT(Half)
TESSERA_MASK_PRODUCT(BFloat16)
#undef TESSERA_MASK_PRODUCT

}  // namespace tessera::runtime
