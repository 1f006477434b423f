#include "tessera/tools/cost_source.hpp"

#include <utility>

#include "tessera/tools/block_study.hpp"
#include "tessera/tools/host_study.hpp"

namespace tessera::tools {
namespace {

class PlannedCosts final : public CostSource {
 public:
  PlannedCosts(const LayerArguments& arguments, const Problem& problem,
               const device::Machine& machine)
      : study_(arguments, problem, machine), clock_hz_(machine.clock_hz) {}

  FormCost random(BlockShape block, double density) override {
    return cost_of(study_.plan_random(block, density));
  }

  FormCost cheapest(BlockShape block, double density) override {
    return cost_of(study_.cheapest(block, density));
  }

  FormCost pattern(const sparse::Csr<double>& ones, BlockShape block) override {
    return cost_of(study_.plan_pattern(ones, block));
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

  BlockStudy study_;
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
                                          const device::Machine& machine) {
  return std::make_unique<PlannedCosts>(arguments, problem, machine);
}

std::unique_ptr<CostSource> measured_costs(const LayerArguments& arguments, double spread) {
  return std::make_unique<MeasuredCosts>(HostStudy(arguments, /*threads=*/0, spread));
}

}  // namespace tessera::tools
