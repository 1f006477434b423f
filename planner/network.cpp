#include "tessera/planner/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "tessera/base/error.hpp"

namespace tessera::planner {
namespace {

[[noreturn]] void refuse_network(const std::string& message) {
  throw_invalid("network: " + message);
}

void check_recompute(const NetworkSpec& spec, std::size_t l) {
  if (!spec.layers[l].recompute) return;
  if (!spec.loss)
    refuse_network(
        fmt::format("layer {} recomputes, but without a loss no result is kept; leave "
                    "recompute out",
                    l + 1));
  if (l + 1 == spec.layers.size())
    refuse_network(
        fmt::format("layer {} recomputes, but the last layer's result is used at once; "
                    "leave recompute out",
                    l + 1));
  if (spec.layers[l + 1].recompute)
    refuse_network(
        fmt::format("layers {} and {} recompute; keep the result of one of them, from "
                    "which the other one is computed again",
                    l + 1, l + 2));
}

void check_layer(const NetworkSpec& spec, std::size_t l) {
  const NetworkLayer& layer = spec.layers[l];
  try {
    check_problem(problem_of(spec, std::int64_t(l)));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("network: layer {}: {}", l + 1, error.what()));
  }
  if (!(layer.activation.cap > 0))
    refuse_network(
        fmt::format("layer {}: the cap is {}; it must be above 0", l + 1, layer.activation.cap));
  if (layer.dense && (layer.block != BlockShape{1, 1} || layer.density != 1))
    refuse_network(fmt::format(
        "layer {} is dense, with blocks of {} x {} and density {}; a dense layer has blocks of "
        "1 x 1 and density 1",
        l + 1, layer.block.rows, layer.block.cols, layer.density));
  check_recompute(spec, l);
  if (l > 0 && spec.layers[l - 1].recompute && layer.operands != Placement::AsLeft)
    refuse_network(fmt::format(
        "layer {} keeps its operand \"{}\", but layer {} recomputes it; use \"as-left\", or leave "
        "recompute out",
        l + 1, to_string(layer.operands), l));
  if (l > 0 && layer.inputs != spec.layers[l - 1].outputs)
    refuse_network(
        fmt::format("layer {} has {} inputs, but layer {} has {} outputs; they must be equal",
                    l + 1, layer.inputs, l, spec.layers[l - 1].outputs));
}

struct WorkFacts {
  NetworkWork work;
  std::string_view name;
  std::optional<Pass> pass = std::nullopt;  // that the work runs
};

// In the order of the enum.
constexpr std::array kWorkFacts{WorkFacts{NetworkWork::Parameters, "parameters"},
                                WorkFacts{NetworkWork::Fwd, "Fwd", Pass::Fwd},
                                WorkFacts{NetworkWork::Activate, "activate"},
                                WorkFacts{NetworkWork::HandOver, "hand over"},
                                WorkFacts{NetworkWork::Loss, "loss"},
                                WorkFacts{NetworkWork::Derivative, "derivative"},
                                WorkFacts{NetworkWork::GradA, "GradA", Pass::GradA},
                                WorkFacts{NetworkWork::GradW, "GradW", Pass::GradW},
                                WorkFacts{NetworkWork::Update, "update"},
                                WorkFacts{NetworkWork::UpdateBiases, "biases"},
                                WorkFacts{NetworkWork::Rehome, "re-home"},
                                WorkFacts{NetworkWork::Recompute, "recompute", Pass::Fwd}};
static_assert(kWorkFacts.size() == std::size_t(NetworkWork::Recompute) + 1);
static_assert(std::ranges::all_of(kWorkFacts, [at = std::size_t(0)](const WorkFacts& f) mutable {
  return std::size_t(f.work) == at++;
}));

const WorkFacts& facts_of(NetworkWork work) {
  TESSERA_ASSERT(std::size_t(work) < kWorkFacts.size());
  return kWorkFacts[std::size_t(work)];
}

}  // namespace

std::string_view to_string(NetworkWork work) { return facts_of(work).name; }

std::optional<Pass> pass_of(NetworkWork work) { return facts_of(work).pass; }

Problem problem_of(const NetworkSpec& spec, std::int64_t layer) {
  const NetworkLayer& l = spec.layers[std::size_t(layer)];
  return {.size = {1, l.outputs, l.inputs, spec.batch},
          .block = l.block,
          .density = l.density,
          .data_type = spec.data_type,
          .partials_type = spec.partials_type,
          .grad_a = spec.loss.has_value() && layer > 0,
          .grad_w = spec.loss.has_value()};
}

std::vector<Problem> problems_of(const NetworkSpec& spec) {
  std::vector<Problem> problems;
  for (std::int64_t l = 0; l < std::ssize(spec.layers); ++l)
    problems.push_back(problem_of(spec, l));
  return problems;
}

void check(const NetworkSpec& spec) {
  if (spec.layers.empty()) refuse_network("it has no layers; give at least one");
  for (std::size_t l = 0; l < spec.layers.size(); ++l) check_layer(spec, l);
  if (spec.loss) codelets::check_in_float(spec.optimiser);
}

Cycles sum_of(std::span<const WorkCost> work) {
  Cycles cycles;
  for (const WorkCost& part : work) cycles += part.cycles;
  return cycles;
}

}  // namespace tessera::planner
