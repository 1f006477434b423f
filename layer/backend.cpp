#include "tessera/layer/backend.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/overlap.hpp"

namespace tessera::layer {
namespace {

[[noreturn]] void refuse(std::string_view message) {
  throw Error(ErrorCode::InvalidArgument, std::string(message));
}

// The names of a pass, of its operands and of its call with a cost in messages.
struct Names {
  std::string_view call, in, out, with_cost;
};

Names names_of(Pass pass) {
  switch (pass) {
    case Pass::Fwd:
      return {"forward", "s", "q", "forward(s, q, options, cost)"};
    case Pass::GradA:
      return {"grad_a", "q_grad", "s_grad", "grad_a(q_grad, s_grad, options, cost)"};
    case Pass::GradW:
      break;
  }
  return {"grad_w", "q_grad", "gradients", "grad_w(q_grad, s, gradients, options, cost)"};
}

// The columns of one call, which are those of its first operand.
class ShapeCheck {
 public:
  ShapeCheck(const LayerFacts& facts, std::string_view first, std::int64_t columns)
      : facts_(facts), first_(first), columns_(columns) {}

  template <class Void>
  void require(std::string_view name, const TypedView<Void>& view, std::int64_t rows) const {
    if (!facts_.any_batch && (view.rows != rows || view.cols != facts_.problem.size.z))
      refuse(fmt::format("{} is {} x {}; this layer needs {} x {}", name, view.rows, view.cols,
                         rows, facts_.problem.size.z));
    if (view.rows != rows || view.cols < 0)
      refuse(fmt::format("{} is {} x {}; this layer needs {} rows and any number of columns", name,
                         view.rows, view.cols, rows));
    if (view.cols != columns_)
      refuse(fmt::format("{} has {} columns and {} has {}; both must have those of the batch",
                         first_, columns_, name, view.cols));
  }

 private:
  const LayerFacts& facts_;
  std::string_view first_;
  std::int64_t columns_;
};

void check_type(std::string_view call, DataType type, const LayerFacts& facts) {
  if (type != facts.problem.data_type)
    refuse(fmt::format("{}: operands are {} but the layer is {}", call, to_string(type),
                       to_string(facts.problem.data_type)));
}

void check_product(Pass pass, const Operands& operands, const PassOptions& options,
                   const LayerFacts& facts) {
  const Names names = names_of(pass);
  const bool is_forward = pass == Pass::Fwd;
  const std::int64_t in_rows = is_forward ? facts.input_rows : facts.output_rows;
  const std::int64_t out_rows = is_forward ? facts.output_rows : facts.input_rows;
  check_type(names.call, operands.out.type, facts);
  const ShapeCheck shape(facts, names.in, operands.in.cols);
  shape.require(names.in, operands.in, in_rows);
  shape.require(names.out, operands.out, out_rows);
  const Footprint in = footprint(names.in, operands.in);
  std::array read = {in, in};  // the second one is what the options add
  if (is_forward && !options.bias.empty()) {
    if (std::ssize(options.bias) != out_rows)
      refuse(fmt::format("forward: the bias has {} numbers; this layer has {} rows of results",
                         options.bias.size(), out_rows));
    read[1] = tessera::footprint("bias", options.bias);
  }
  if (!is_forward && !options.where_positive.empty()) {
    check_type(names.call, options.where_positive.type, facts);
    shape.require("where_positive", options.where_positive, out_rows);
    read[1] = footprint("where_positive", options.where_positive);
  }
  check_memory(names.call, footprint(names.out, operands.out), read);
}

void check_gradient(const Operands& operands, const LayerFacts& facts) {
  check_type("grad_w", operands.in_s.type, facts);
  if (std::ssize(operands.gradients) != facts.values)
    refuse(fmt::format("grad_w: the output has space for {} gradients; this layer has {} values",
                       operands.gradients.size(), facts.values));
  const ShapeCheck shape(facts, "q_grad", operands.in.cols);
  shape.require("q_grad", operands.in, facts.output_rows);
  shape.require("s", operands.in_s, facts.input_rows);
  check_memory("grad_w", tessera::footprint("gradients", operands.gradients),
               std::array{footprint("q_grad", operands.in), footprint("s", operands.in_s)});
}

// An option of another pass would be ignored, which nobody wants to find out later.
void check_options(Pass pass, const PassOptions& options, const LayerFacts& facts) {
  const bool is_forward = pass == Pass::Fwd;
  const bool has_activation = options.activation != codelets::Activation::None;
  const std::string_view call = names_of(pass).call;
  if (!is_forward && (!options.bias.empty() || has_activation))
    refuse(fmt::format("{}: bias and activation belong to forward", call));
  if (pass != Pass::GradA && !options.where_positive.empty())
    refuse(fmt::format("{}: where_positive belongs to grad_a", call));
  if (pass != Pass::GradW && options.accumulate != Accumulate::No)
    refuse(fmt::format("{}: accumulate belongs to grad_w", call));
  const bool works = !options.bias.empty() || has_activation || !options.where_positive.empty() ||
                     options.accumulate != Accumulate::No;
  if (works && !facts.works_on_results)
    refuse(
        fmt::format("{}: this layer returns the product alone (facts().works_on_results); "
                    "apply bias, activation, derivative or sum to its results",
                    call));
}

}  // namespace

std::unique_ptr<PreparedUpdate::State> Backend::prepare(const sparse::PatternChange&,
                                                        std::int64_t) {
  refuse("prepare_update: the pattern of this layer stays");
}

void Backend::commit(PreparedUpdate::State&) { refuse("commit: the pattern of this layer stays"); }

std::string_view Backend::call_of(Pass pass) { return names_of(pass).call; }

void Backend::check_is_whole(Pass pass, const PassOptions& options) {
  if (options.stop.stop_possible())
    refuse(
        fmt::format("a pass that may be stopped needs a cost to write to: {} returns whether it "
                    "finished",
                    names_of(pass).with_cost));
}

void Backend::check(Pass pass, const Operands& operands, const PassOptions& options) const {
  const std::string_view name = call_of(pass);
  const LayerFacts layer = facts();
  check_type(name, operands.in.type, layer);
  if (!layer.passes[std::size_t(pass)])
    refuse(fmt::format("{}: the problem does not include this pass", name));
  if (!layer.has_weights) refuse(fmt::format("{}: call set_weights first", name));
  if (options.target != nullptr && !takes(*options.target))
    refuse(fmt::format("{}: options.target is for another kind of layer", name));
  check_options(pass, options, layer);
  if (pass == Pass::GradW)
    check_gradient(operands, layer);
  else
    check_product(pass, operands, options, layer);
}

}  // namespace tessera::layer
