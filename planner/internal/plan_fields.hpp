#pragma once

#include "tessera/base/pattern_stats.hpp"
#include "tessera/planner/internal/json_archive.hpp"
#include "tessera/planner/planner.hpp"

// The one list of the fields of a plan and of a request in JSON. A new field takes one line here;
// if it is missing, a plan does not load back unchanged, which a test detects. The inputs of the
// planner are listed with structured bindings, so that a missing field does not compile, because a
// plan cache without it would give wrong answers.
namespace tessera::planner::internal {

inline constexpr WholeRange kSizes{1, kLargestSize};
inline constexpr WholeRange kFigures{0, std::int64_t{1} << 53};  // exact in every JSON reader
inline constexpr WholeRange kAnyWhole{std::numeric_limits<std::int64_t>::min(),
                                      std::numeric_limits<std::int64_t>::max()};

inline const Names<DataType>& type_names() {
  static const auto names = names_of({DataType::Float, DataType::Half, DataType::BFloat16});
  return names;
}

inline const Names<Pass>& pass_names() {
  static const auto names = names_of({Pass::Fwd, Pass::GradA, Pass::GradW});
  return names;
}

inline const Names<Method>& method_names() {
  static const auto names = names_of(
      {Method::ElementFwd, Method::ElementGradA, Method::ElementTranspose, Method::ElementGradW,
       Method::BlockFwd, Method::BlockTranspose, Method::BlockGradW, Method::BlockGradWAmp});
  return names;
}

inline const Names<Term>& term_names() {
  static const Names<Term> names = [] {
    Names<Term> all;
    for (const Term term : all_terms()) all.emplace_back(term, to_string(term));
    return all;
  }();
  return names;
}

inline const Names<Placement>& placement_names() {
  static const auto names = names_of({Placement::EvenSpread, Placement::AsLeft, Placement::AtHome});
  return names;
}

inline const Names<PlanStatus>& status_names() {
  static const Names<PlanStatus> names{{PlanStatus::Found, "found"},
                                       {PlanStatus::NoPlan, "no plan"},
                                       {PlanStatus::LimitReached, "limit reached"},
                                       {PlanStatus::BestEffort, "best effort"}};
  return names;
}

void describe(auto& fields, MaybeConst<Dims> auto& dims) {
  auto& [g, x, y, z] = dims;
  fields("g", g, kSizes);
  fields("x", x, kSizes);
  fields("y", y, kSizes);
  fields("z", z, kSizes);
}

void describe(auto& fields, MaybeConst<BlockShape> auto& block) {
  auto& [rows, cols] = block;
  fields("rows", rows, kSizes);
  fields("cols", cols, kSizes);
}

void describe(auto& fields, MaybeConst<Problem> auto& problem) {
  auto& [size, block, density, data_type, partials_type, grad_a, grad_w] = problem;
  fields("size", size);
  fields("block", block);
  fields("density", density);
  fields("data_type", data_type, type_names());
  fields("partials_type", partials_type, type_names());
  fields("grad_a", grad_a);
  fields("grad_w", grad_w);
}

void describe(auto& fields, MaybeConst<PlanConstraints> auto& pins) {
  auto& [x, y, z, exchange_buckets, use_dense] = pins;
  fields.group("partition", [&](auto& partition) {
    partition("x", x, kAnyWhole);
    partition("y", y, kAnyWhole);
    partition("z", z, kAnyWhole);
  });
  fields.group("exchange",
               [&](auto& exchange) { exchange("gradWExchangeBuckets", exchange_buckets); });
  fields("useDense", use_dense);
}

// The keys of option text, so that this part of a file may be given as options again.
void describe(auto& fields, MaybeConst<Options> auto& options) {
  auto& [memory, oversize, confidence, pattern_count, shared, per_pass, rearrangements, placement,
         force_spills, search_limit, constraints, parity] = options;
  fields("availableMemoryProportion", memory);
  fields("metaInfoBucketOversizeProportion", oversize);
  fields("bucketConfidence", confidence);
  fields("patternCount", pattern_count, kAnyWhole);
  fields("sharedBuckets", shared);
  fields("perPassPlans", per_pass);
  fields("enableStructuredRearrangements", rearrangements);
  fields("operandPlacement", placement, placement_names());
  fields("partitioner.forceBucketSpills", force_spills);
  fields("searchLimit", search_limit, kAnyWhole);
  fields("planConstraints", constraints);
  fields("popLibsParity", parity);
}

void describe(auto& fields, MaybeConst<PatternStats> auto& stats) {
  auto& [block, row_counts, col_counts, bin, before] = stats;
  fields("block", block);
  fields("row_counts", row_counts, kAnyWhole);
  fields("col_counts", col_counts, kAnyWhole);
  fields("bin", bin);
  fields("before", before, kAnyWhole);
}

void describe(auto& fields, MaybeConst<CostTerm> auto& term) {
  fields("name", term.name, term_names());
  fields("cycles", term.cycles, kFigures);
  fields("temp", term.temp, kFigures);
}

void describe(auto& fields, MaybeConst<PassCost> auto& cost) {
  fields("pass", cost.pass, pass_names());
  fields("terms", cost.terms);
}

void describe(auto& fields, MaybeConst<PlanCost> auto& cost) {
  fields("cycles", cost.cycles, kFigures);
  fields("temp", cost.temp, kFigures);
  fields("resident", cost.resident, kFigures);
  fields("passes", cost.passes);
}

inline const Names<Side>& side_names() {
  static const Names<Side> names{{Side::Left, "left"}, {Side::Right, "right"}};
  return names;
}

void describe(auto& fields, MaybeConst<ProductShape> auto& shape) {
  auto& [rows, inner, columns] = shape;
  fields("rows", rows, kSizes);
  fields("inner", inner, kSizes);
  fields("columns", columns, kSizes);
}

void describe(auto& fields, MaybeConst<PassProduct> auto& product) {
  auto& [pass, size, left_transposed, right_transposed] = product;
  fields("pass", pass, pass_names());
  fields("size", size);
  fields("left_transposed", left_transposed);
  fields("right_transposed", right_transposed);
}

void describe(auto& fields, MaybeConst<DensePassPlan> auto& pass) {
  auto& [product, rounds, parts, grain, weights, neighbours, cost] = pass;
  fields("product", product);
  fields("rounds", rounds);
  fields("parts", parts);
  fields("grain", grain);
  fields("weights", weights, side_names());
  fields("neighbours", neighbours, side_names());
  fields("cost", cost);
}

void describe(auto& fields, MaybeConst<DensePlan> auto& plan) {
  auto& [data_type, partials_type, groups, passes, cost] = plan;
  fields("data_type", data_type, type_names());
  fields("partials_type", partials_type, type_names());
  fields("groups", groups, kSizes);
  fields("passes", passes);
  fields("cost", cost);
}

// Files from before `dense` have no such key.
void describe(auto& fields, MaybeConst<Plan> auto& plan) {
  fields("fwd", plan.fwd, method_names());
  fields("grad_a", plan.grad_a, method_names());
  fields("grad_w", plan.grad_w, method_names());
  fields("block", plan.block);
  fields("grain", plan.grain);
  fields("partition", plan.partition);
  fields("grad_w_exchange_buckets", plan.grad_w_exchange_buckets);
  fields("use_dense", plan.use_dense);
  fields("operand_placement", plan.operand_placement, placement_names());
  fields("nonzeros_per_bucket", plan.nonzeros_per_bucket, kFigures);
  fields("fwd_meta_words", plan.fwd_meta_words, kFigures);
  fields("grad_a_meta_words", plan.grad_a_meta_words, kFigures);
  fields("cost", plan.cost);
  fields("backward", plan.backward);
  fields("dense", plan.dense);
}

// Also uses structured bindings, because results have no == with which a test could detect a
// missing field.
void describe(auto& fields, MaybeConst<PlanResult> auto& result) {
  auto& [status, has_plan, plan, memory_bound, least_temp, evaluations, reason] = result;
  fields("status", status, status_names());
  fields("has_plan", has_plan);
  fields("plan", plan);
  fields("memory_bound", memory_bound, kAnyWhole);
  fields("least_temp", least_temp, kAnyWhole);
  fields("evaluations", evaluations, kAnyWhole);
  fields("reason", reason);
}

}  // namespace tessera::planner::internal
