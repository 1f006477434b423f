#include "tessera/codelets/cost/network_cycles.hpp"

#include <variant>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::codelets {
namespace {

constexpr std::int64_t kLanes = 2;     // floats in a vector of 64 bits
constexpr std::int64_t kStart = 15;    // of a worker: its share, and the loop
constexpr std::int64_t kRowStart = 3;  // bias, its copy, counter

// The instructions of a loop body.
struct Body {
  std::int64_t vector = 0;  // for each vector
  std::int64_t single = 0;  // for each element
};

Cycles loop_cycles(std::int64_t elements, std::int64_t rows, const Body& body,
                   std::int64_t workers) {
  if (elements == 0) return {};
  const std::int64_t vectors = ceil_div(ceil_div(elements, kLanes), workers);
  return Cycles(workers * (kStart + kRowStart * ceil_div(rows, workers) +
                           vectors * (body.vector + kLanes * body.single)));
}

// Widening or narrowing of so many arrays.
std::int64_t conversions(DataType type, std::int64_t arrays) {
  return type == DataType::Float ? 0 : arrays;
}

// A rule adds these instructions to the loads, the last product and the store of a step. Rules that
// differ in the order of their products alone take as many.
struct RuleBody {
  Body operator()(const Sgd& rule) const { return {.vector = rule.momentum > 0 ? kMomentum : 0}; }
  Body operator()(const Nesterov&) const { return {.vector = kMomentum + 1}; }  // one more product
  Body operator()(const TorchSgd&) const { return {.vector = kMomentum}; }
  // Load and store of h, square and sum, epsilon; a root and a division.
  Body operator()(const AdaGrad&) const { return {4, 2}; }
  Body operator()(const Adam&) const { return {kAdam, 2}; }
  Body operator()(const AdamW& rule) const { return {kAdam + (rule.decay > 0 ? 1 : 0), 2}; }

  static constexpr std::int64_t kMomentum = 4;  // load and store of m, product, sum
  // Loads and stores of m and v, two times two sums, epsilon; a root and a division.
  static constexpr std::int64_t kAdam = 9;
};

}  // namespace

Cycles clear_padding_cycles(std::int64_t tail_bytes, std::int64_t rows, std::int64_t row_bytes,
                            std::int64_t workers) {
  constexpr std::int64_t kStoreBytes = 8;
  Cycles cycles;
  if (tail_bytes > 0) cycles += zero_cycles(tail_bytes, workers);
  if (rows > 0 && row_bytes > 0)
    cycles += Cycles(workers * (kStart + ceil_div(rows, workers) *
                                             (kRowStart + ceil_div(row_bytes, kStoreBytes))));
  return cycles;
}

Cycles activate_cycles(std::int64_t elements, std::int64_t rows, const ActivationRule& rule,
                       DataType type, std::int64_t workers) {
  Body body{.vector = 3 + conversions(type, 2)};        // load, add, store
  if (rule.kind == Activation::Relu) body.vector += 2;  // max, min
  if (rule.kind == Activation::Gelu)
    // Square, cube, sum with v, scale; tanh; 1 + t, half of v, product; the store of the results.
    body = {body.vector + 8 + conversions(type, 1), 1};
  return loop_cycles(elements, rows, body, workers);
}

Cycles derivative_cycles(std::int64_t elements, const ActivationRule& rule, DataType type,
                         std::int64_t workers) {
  if (rule.kind == Activation::None) return {};
  Body body{.vector = 4 + conversions(type, 3)};        // two loads, product, store
  if (rule.kind == Activation::Relu) body.vector += 3;  // two comparisons, and of both
  if (rule.kind == Activation::Gelu)
    // As above up to tanh; 1 - t^2, 1 + 3 a v^2, two products, and the sum of both terms.
    body = {body.vector + 10, 1};
  return loop_cycles(elements, 0, body, workers);
}

Cycles sum_rows_cycles(std::int64_t elements, std::int64_t rows, DataType type,
                       std::int64_t workers) {
  return loop_cycles(elements, rows, {.vector = 2 + conversions(type, 1)}, workers);
}

Cycles loss_cycles(const LossPart& part, Loss loss, DataType type, std::int64_t workers) {
  const std::int64_t elements = part.rows * part.columns;
  if (loss == Loss::MeanSquaredError)
    // Two loads, difference, sum of squares, scale, store.
    return loop_cycles(elements, 0, {.vector = 6 + conversions(type, 3)}, workers);
  // Largest: load, max. Sum: load, difference, exp, add. Gradient: load, difference, exp, divide by
  // the sum and by the batch as one product, difference to the label, store. A column ends with a
  // logarithm and the loads of its label and output.
  return loop_cycles(elements, part.columns, {10 + conversions(type, 4), 2}, workers);
}

Cycles update_cycles(std::int64_t elements, const Optimiser& optimiser, DataType type,
                     std::int64_t workers) {
  Body body = std::visit(RuleBody{}, optimiser.rule);
  body.vector += 4 + conversions(type, 3);            // two loads, fused product and sum, store
  if (optimiser.rescale != 1) body.vector += 1;       // product
  if (optimiser.clip) body.vector += 2;               // max, min
  if (optimiser.weight_decay != 0) body.vector += 1;  // fused product and sum
  return loop_cycles(elements, 0, body, workers);
}

}  // namespace tessera::codelets
