#include "tessera/planner/plan.hpp"

#include <fmt/format.h>

#include "tessera/planner/internal/terms_text.hpp"

namespace tessera::planner {

bool Plan::shared_buckets() const {
  return grad_a == Method::ElementTranspose || grad_a == Method::BlockTranspose;
}

bool Plan::runs_transposed(Pass pass) const {
  if (backward.empty() || pass == Pass::Fwd) return false;
  return pass == Pass::GradA || backward[0].cost.find(pass) != nullptr;
}

namespace {

std::string layout_text(const Plan& plan) {
  return fmt::format(
      "partition  {} on {} tiles, grain {}, block {}x{}\n"
      "buckets    {} values, {} words forward, {} words grad_a{}\n"
      "grad_w     {} travel{}\n",
      to_string(plan.partition), plan.tiles_used(), to_string(plan.grain), plan.block.rows,
      plan.block.cols, plan.nonzeros_per_bucket, plan.fwd_meta_words.value,
      plan.grad_a_meta_words.value, plan.shared_buckets() ? " (shared)" : "",
      plan.grad_w_exchange_buckets ? "buckets" : "operands",
      plan.use_dense ? ", dense copy of R" : "");
}

// Returns the method of each pass, from the layout that runs the pass.
std::string methods_text(const Plan& plan) {
  if (plan.backward.empty())
    return fmt::format("methods    {}, {}, {}\n", codelets::to_string(plan.fwd),
                       codelets::to_string(plan.grad_a), codelets::to_string(plan.grad_w));
  return fmt::format("methods    {}; GradA in a layout of its own: {} of transpose(R); {}{}\n",
                     codelets::to_string(plan.fwd), codelets::to_string(plan.backward[0].fwd),
                     codelets::to_string(plan.layout_of(Pass::GradW).grad_w),
                     plan.runs_transposed(Pass::GradW) ? " there" : "");
}

}  // namespace

std::string to_string(const Plan& plan) {
  if (plan.dense) return to_string(*plan.dense);
  std::string text = methods_text(plan) + layout_text(plan);
  text += fmt::format("operands   {}\n", to_string(plan.operand_placement));
  for (const Plan& other : plan.backward)
    text += "GradA's own layout, x and y exchanged\n" + layout_text(other);
  text += fmt::format("cost       {} cycles, {} bytes temporary, {} bytes resident per tile\n",
                      plan.cost.cycles.value, plan.cost.temp.value, plan.cost.resident.value);
  for (const PassCost& pass : plan.cost.passes)
    text += fmt::format("{:<10} {} cycles, {} bytes\n", to_string(pass.pass), pass.cycles().value,
                        pass.temp().value) +
            internal::terms_text(pass, internal::Shown::CyclesAndMemory);
  return text;
}

}  // namespace tessera::planner
