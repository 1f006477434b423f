#include "tessera/tools/cost_source.hpp"

#include <utility>

#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/tools/block_study.hpp"
#include "tessera/tools/host_study.hpp"
#include "tessera/tools/static_layer.hpp"

namespace tessera::tools {
namespace {

class PlannedCosts final : public CostSource {
 public:
  PlannedCosts(const LayerArguments& arguments, const Problem& problem,
               const device::Machine& machine, std::shared_ptr<StaticStudy> fixed)
      : fixed_(std::move(fixed)),
        study_(arguments, problem, machine),
        problem_(problem),
        machine_(machine),
        options_{make_options(arguments, {}).available_memory_proportion},
        clock_hz_(machine.clock_hz) {}

  FormCost random(BlockShape block, double density) override {
    return cost_of(study_.plan_random(block, density));
  }

  FormCost cheapest(BlockShape block, double density) override {
    return cost_of(study_.cheapest(block, density));
  }

  FormCost pattern(const sparse::Csr<double>& ones, BlockShape block) override {
    return cost_of(study_.plan_pattern(ones, block));
  }

  std::optional<FormCost> fixed(BlockShape block, double density) override {
    FormCost cost{.cost = {}, .note = {}, .kernel = {}, .density = density};
    const auto result = fixed_->random(study_.problem(block, density), machine_, options_);
    cost.note = result.reason;
    if (!result.cost) return cost;
    cost.cost = double(result.cost->cycles.value);
    cost.tiles = result.tiles;
    cost.temporary = result.cost->temp;
    return cost;
  }

  double highest_fixed(BlockShape block, double cost) override {
    return StaticStudy::highest_density(study_.problem(block, 1), machine_, cost);
  }

  std::optional<FormCost> fixed_pattern(const sparse::Csr<double>& ones,
                                        BlockShape block) override {
    const sparse::Csr<double> blocks = in_whole_blocks(ones, block);
    const double places = double(blocks.block_rows()) * double(blocks.block_cols());
    return fixed_cost(blocks, double(blocks.blocks()) / places);
  }

  FormCost dense() override {
    if (!dense_) dense_ = study_.dense();
    FormCost cost{.cost = {}, .note = dense_->reason, .kernel = {}};
    if (!dense_->plan) return cost;
    cost.cost = double(dense_->plan->cost.cycles.value);
    cost.kernel = report::sums_name(dense_->plan->partials_type);
    cost.tiles = dense_->plan->groups * dense_->plan->passes.front().parts.product();
    cost.temporary = dense_->plan->cost.temp;
    return cost;
  }

  double seconds(double cost) const override { return cost / clock_hz_; }

  report::CostUnit unit() const override { return report::CostUnit::Cycles; }

 private:
  static FormCost cost_of(const BlockPlan& p) {
    FormCost cost{.cost = {}, .note = p.note, .kernel = {}, .density = p.density};
    if (!p.plan) return cost;
    cost.cost = double(p.cycles.value);
    cost.tiles = p.plan->tiles_used();
    cost.temporary = p.plan->cost.temp;
    return cost;
  }

  template <class T>
  FormCost fixed_cost(const sparse::Csr<T>& matrix, double density) const {
    FormCost cost{.cost = {}, .note = {}, .kernel = {}, .density = density};
    if (!codelets::has_static_kernel(matrix.block)) {
      cost.note = "no static kernel for these blocks";
      return cost;
    }
    Problem problem = problem_;
    problem.block = matrix.block;
    problem.density = density;
    const auto result =
        planner::plan_static(with_static_sums(problem), block_pattern(matrix), machine_, options_);
    cost.note = result.reason;
    if (!result.plan) return cost;
    cost.cost = double(result.plan->cost.cycles.value);
    cost.tiles = result.plan->tiles_used();
    cost.temporary = result.plan->cost.temp;
    return cost;
  }

  std::shared_ptr<StaticStudy> fixed_;
  BlockStudy study_;
  Problem problem_;
  device::Machine machine_;
  planner::StaticOptions options_;
  double clock_hz_;
  std::optional<planner::DensePlanResult> dense_;
};

class MeasuredCosts final : public CostSource {
 public:
  explicit MeasuredCosts(HostStudy study) : study_(std::move(study)) {}

  FormCost random(BlockShape block, double density) override {
    return cost_of(study_.random(block, density), density);
  }

  FormCost pattern(const sparse::Csr<double>& ones, BlockShape block) override {
    const sparse::Csr<double> blocks = in_whole_blocks(ones, block);
    const double places = double(blocks.block_rows()) * double(blocks.block_cols());
    return cost_of(study_.pattern(ones, block), double(blocks.blocks()) / places);
  }

  FormCost dense() override {
    if (!dense_) dense_ = cost_of(study_.fastest_dense(), 1);
    return *dense_;
  }

  double seconds(double cost) const override { return cost; }

  report::CostUnit unit() const override { return report::CostUnit::Seconds; }

 private:
  static FormCost cost_of(const MeasuredLayer& measured, double density) {
    return {.cost = measured.seconds(),
            .spread = measured.spread(),
            .note = {},
            .kernel = measured.kernel,
            .density = density};
  }

  HostStudy study_;
  std::optional<FormCost> dense_;
};

}  // namespace

std::unique_ptr<CostSource> planned_costs(const LayerArguments& arguments, const Problem& problem,
                                          const device::Machine& machine,
                                          std::shared_ptr<StaticStudy> fixed) {
  return std::make_unique<PlannedCosts>(arguments, problem, machine, std::move(fixed));
}

std::unique_ptr<CostSource> measured_costs(const LayerArguments& arguments, double spread) {
  return std::make_unique<MeasuredCosts>(HostStudy(arguments, /*threads=*/0, spread));
}

}  // namespace tessera::tools
