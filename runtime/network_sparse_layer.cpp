#include "tessera/runtime/internal/network_sparse_layer.hpp"

#include <algorithm>
#include <utility>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/runtime/internal/spmm_role.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

NetworkSparseLayer::NetworkSparseLayer(const NetworkLayer& l, const Problem& p,
                                       const planner::Plan& plan,
                                       const codelets::Optimiser* optimiser, TileProgram& program,
                                       Executor& executor)
    : NetworkLayerState(l, p, optimiser, program),
      weights_(p, plan, program.engine().machine(), executor),
      forward_(weights_.forward, program),
      fwd_(weights_.spec(Pass::Fwd), program, fwd_homes_) {
  if (weights_.transposed) transposed_.emplace(*weights_.transposed, program);
  make_passes();
  const planner::Homes of_grad_a = of(Pass::GradA).homes();
  const TensorHome in_gradient =
      grad_a_ ? tensor_home(transposed_ ? of_grad_a.result_q() : of_grad_a.result_ds())
              : TensorHome{};
  set_result_homes(tensor_home(forward_.homes().result_q()), grad_a_ ? &in_gradient : nullptr);
}

void NetworkSparseLayer::make_passes() {
  if (recomputes()) again_.emplace(weights_.spec(Pass::Fwd), program_, again_homes_);
  if (problem.grad_a) grad_a_.emplace(weights_.spec(Pass::GradA), program_, grad_a_homes_);
  if (problem.grad_w)
    grad_w_ = GradWPass::make(weights_.spec(Pass::GradW), updated().layout.grad_w_exchange(),
                              program_, grad_w_homes_);
  if (transposed_)
    rehome_.emplace(RehomeSpec{updated().layout.grid, other().layout.grid}, program_,
                    &rehome_homes_);
}

void NetworkSparseLayer::set_input(const TensorHome& input, const TensorHome& in_backward) {
  const SpmmPass& kept = again_ ? *again_ : fwd_;
  const bool is_here =
      grad_w_ && &input == &in_backward && !updates_transposed() && kept.in.sharers() == 1;
  fwd_homes_.cleared = again_homes_.cleared = is_here ? Cleared::All : Cleared::Rows;
  NetworkLayerState::set_input(input, is_here ? kept.in.slices() : in_backward);
}

void NetworkSparseLayer::set_dq(const TensorHome& dq) {
  NetworkLayerState::set_dq(dq);
  const bool is_same_layout = has_two_layouts() == updates_transposed();
  const bool is_here =
      grad_a_ && is_same_layout && grad_a_->in.sharers() == 1 && !grad_w_->cells_move();
  if (is_here) grad_w_homes_.q = &grad_a_->in.slices();
}

void NetworkSparseLayer::declare_weights() {
  forward_.declare_resident("");
  if (transposed_) transposed_->declare_resident(" of the second layout");
  forward_.give(fwd_homes_, Pass::Fwd);
  forward_.give(again_homes_, Pass::Fwd);
  if (grad_a_) of(Pass::GradA).give(grad_a_homes_, grad_a_->pass());
  updated().give(grad_w_homes_, Pass::GradW);
  // In the layout of transpose(R), S takes the place of dQ. The homes of both are set by now.
  if (updates_transposed()) std::swap(grad_w_homes_.q, grad_w_homes_.s);
  if (transposed_) rehome_homes_ = {updated().buckets, other().buckets};
  parts = updated().parts();
  if (transposed_) copies = other().parts();
}

void NetworkSparseLayer::add_loaded(Uses& uses) const {
  forward_.add_loaded(uses);
  if (transposed_) transposed_->add_loaded(uses);
}

void NetworkSparseLayer::declare_load() {
  NetworkLayerState::declare_load();
  if (rehome_) rehome_->declare_load();
}

template <class Visit>
void NetworkSparseLayer::for_each_loop(const Visit& visit) {
  const auto visit_possible = [&](TravelLoop& loop, Pass pass) {
    if (loop.possible()) visit(loop, pass);
  };
  visit_possible(fwd_.loop, Pass::Fwd);
  if (again_) visit_possible(again_->loop, Pass::Fwd);
  if (grad_a_) visit_possible(grad_a_->loop, Pass::GradA);
  if (grad_w_) visit_possible(grad_w_->loop, Pass::GradW);
}

void NetworkSparseLayer::complete_load() {
  for_each_loop(
      [this](const TravelLoop& loop, Pass) { program_.also_writes(load_node_, loop.words()); });
}

const Reduction& NetworkSparseLayer::declare_product(Pass pass, Turn turn) {
  SpmmPass& declared = pass == Pass::GradA ? *grad_a_ : turn == Turn::First ? fwd_ : *again_;
  declared.declare();
  return declared.reduction;
}

BufferId NetworkSparseLayer::declare_gradients_at_home() {
  const BufferId computed = grad_w_->use.result;
  if (!grad_w_->cells_move()) {
    for (UpdatedPart& part : parts) part.gradients = grad_w_->slots_of(part.tile).result;
    return computed;
  }
  const BufferId at_home = program_.add_buffer("gradients at home");
  std::vector<device::Gather> gathers;
  for (UpdatedPart& part : parts) {
    part.gradients = program_.add_slot(at_home, part.tile, 1, updated().bucket_value_bytes());
    const TileId here = grad_w_->map.tile(updated().map.cell(part.tile));
    gathers.push_back({{{grad_w_->slots_of(here).result, {0, 1}}}, {part.gradients}});
  }
  program_.exchange(Phase::Update, {{computed}, {at_home}}, std::move(gathers));
  return at_home;
}

std::vector<BufferId> NetworkSparseLayer::value_buffers() const {
  std::vector<BufferId> all{updated().buckets.use.payload};
  if (transposed_) all.push_back(other().buckets.use.payload);
  return all;
}

std::optional<partitioner::Misfit> NetworkSparseLayer::set_weights(
    const sparse::CheckedCsr<float>& given) {
  layer::check_weights(problem, {&given, 1});  // so that messages name rows and columns of R
  auto misfit = weights_.set({&given, 1});
  if (!misfit) set_parameters();
  return misfit;
}

void NetworkSparseLayer::restore_weights(const partitioner::SavedWeights& saved) {
  weights_.restore(saved);
  set_parameters();
}

Bytes NetworkSparseLayer::pattern_bytes() const {
  const Bytes bytes = weights_.forward.weights.pattern_bytes().all();
  if (!transposed_) return bytes;
  const std::int64_t tables = other().layout.grid.buckets() * rehome_->table_bytes();
  return bytes + weights_.transposed->weights.pattern_bytes().all() + Bytes(tables);
}

void NetworkSparseLayer::set_parameters() {
  const auto values_of = [](const NetworkLayout& layout) {
    const std::byte* first = layout.layout.weights.image().values;
    return std::vector<std::byte>(first, first + layout.values_bytes());
  };
  parameters.values = values_of(updated());
  parameters.copy = transposed_ ? values_of(other()) : std::vector<std::byte>();
  reset_states(updated().layout.grid.buckets() * updated().values_per_bucket());
  if (transposed_) weights_.make_tables(rehome_->tables, /*back=*/updates_transposed());
}

sparse::Csr<float> NetworkSparseLayer::current_weights() {
  const std::vector<std::byte>& values = updates_transposed() ? parameters.copy : parameters.values;
  sparse::Csr<float> result = *weights_.forward.weights.given(0);
  with_type(problem.data_type, [&]<class T>(T) {
    weights_.forward.weights.to_given<T>(
        {reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T)}, 0, result.values);
  });
  return result;
}

namespace {

// Returns the cycles in which the tiles of the fullest cell visit all buckets of their cell in Fwd
// or GradA, or in GradW the fullest bucket, of which a round visits one.
Cycles fullest_visit(const WeightLayout& layout, const PassSpec& spec,
                     const device::Machine& machine, bool one_by_one) {
  const partitioner::Buckets& buckets = layout.weights.buckets(0);
  const Dims& splits = layout.grid.splits;
  const bool own_words = values_shape(spec).grad_a_words;
  std::vector<const void*> words(std::size_t(splits.z));
  const std::size_t together = one_by_one ? 1 : words.size();
  Cycles most;
  for (std::int64_t x = 0; x < splits.x; ++x)
    for (std::int64_t y = 0; y < splits.y; ++y) {
      for (std::int64_t z = 0; z < splits.z; ++z) {
        const std::int64_t bucket = layout.grid.bucket_index(x, y, z);
        words[std::size_t(z)] =
            own_words ? buckets.grad_a_meta_words(bucket) : buckets.meta_words(bucket);
      }
      for (std::size_t z = 0; z < words.size(); z += together)
        most = std::max(most, visit_cycles(spec, machine, std::span(words).subspan(z, together),
                                           codelets::sub_group_id(x, y, splits.y)));
    }
  return most;
}

// A plan from a file may have a pass without this term.
Cycles multiply_cycles(const planner::PassCost& cost) {
  const planner::CostTerm* const term = cost.find(planner::Term::Multiply);
  return term == nullptr ? Cycles() : term->cycles;
}

}  // namespace

// The term of a plan has the clearing of the sums and, in GradW, one round if buckets travel and
// all rounds over the parts of the batch if operands do.
Cycles NetworkSparseLayer::multiply_excess(const planner::Plan& plan, Pass pass) const {
  const device::Machine& machine = program_.engine().machine();
  const planner::Plan& of_pass = plan.layout_of(pass);
  const WeightLayout& layout = weights_.layout_of(pass);
  const Pass in_layout = weights_.pass_in_layout(pass);
  const PassSpec spec = layout.spec(in_layout);
  if (pass == Pass::GradW) {
    const std::int64_t sum_bytes = updated().values_per_bucket() * bytes_of(problem.partials_type);
    const std::int64_t rounds = layout.grid.splits.z;
    const std::int64_t planned_rounds = of_pass.grad_w_exchange_buckets ? 1 : rounds;
    const Cycles planned = multiply_cycles(*plan.cost.find(Pass::GradW)) -
                           codelets::zero_cycles(sum_bytes, machine.workers);
    const Cycles counted = fullest_visit(layout, spec, machine, /*one_by_one=*/true);
    return rounds * counted - Cycles(rounds * planned.value / planned_rounds);
  }
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < role_of(spec).out_parts(layout.grid.splits); ++i)
    rows = std::max(
        rows, (in_layout == Pass::Fwd ? layout.grid.x_range(i) : layout.grid.y_range(i)).size());
  const Cycles cleared = codelets::zero_cycles(
      rows * layout.grid.z_per_tile() * bytes_of(problem.partials_type), machine.workers);
  return cleared + fullest_visit(layout, spec, machine, /*one_by_one=*/false) -
         multiply_cycles(*of_pass.cost.find(in_layout));
}

void NetworkSparseLayer::load() {
  for_each_loop([this](TravelLoop& loop, Pass pass) {
    loop.load(program_.engine(), weights_.layout_of(pass).weights.image().travel_words);
  });
  if (grad_w_) grad_w_->begin();
  forward_.load_words();
  if (transposed_) transposed_->load_words();
  NetworkLayerState::load();
}

}  // namespace tessera::runtime::internal
