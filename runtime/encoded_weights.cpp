#include "tessera/runtime/internal/encoded_weights.hpp"

#include <utility>

#include "tessera/planner/layouts.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::runtime::internal {
namespace {

// Cells and tiles in a misfit of this layout are those of the transpose, and its message says so.
std::optional<partitioner::Misfit> turned_name(std::optional<partitioner::Misfit> misfit) {
  if (misfit)
    misfit->message = "in GradA's own layout, where x and y are exchanged: " + misfit->message;
  return misfit;
}

}  // namespace

Problem forward_problem(const Problem& problem, const planner::Plan& plan) {
  return plan.backward.empty()
             ? problem
             : planner::two_problems(problem, plan.runs_transposed(Pass::GradW)).forward;
}

EncodedWeights::EncodedWeights(const Problem& problem, const planner::Plan& plan,
                               const device::Machine& machine, Executor& executor)
    : forward(forward_problem(problem, plan), plan, machine, executor) {
  if (!plan.backward.empty())
    transposed.emplace(planner::two_problems(problem, plan.runs_transposed(Pass::GradW)).transposed,
                       plan.backward.front(), machine, executor);
}

std::vector<sparse::CheckedCsr<float>> EncodedWeights::turned(
    std::span<const sparse::CheckedCsr<float>> weights) {
  std::vector<sparse::CheckedCsr<float>> all;
  next_places_.clear();
  for (const auto& matrix : weights) {
    all.push_back(sparse::transpose(matrix));
    next_places_.push_back(sparse::transpose_order(all.back()));
  }
  return all;
}

void EncodedWeights::take() {
  if (transposed) transposed->weights.take();
  places_.swap(next_places_);
  forward.weights.take();
}

std::optional<partitioner::Misfit> EncodedWeights::set(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  if (transposed) {
    partitioner::EncodeOptions own = options;
    if (own.even_load) own.even_load = transposed->load_cost;
    if (auto misfit = transposed->weights.encode(turned(weights), own))
      return turned_name(std::move(misfit));
  }
  if (auto misfit = forward.weights.encode(weights, options)) return misfit;
  take();
  return std::nullopt;
}

std::optional<partitioner::Misfit> EncodedWeights::encode_update(
    const sparse::PatternChange& change, std::int64_t group) {
  if (auto misfit = forward.weights.encode_update(change, group)) return misfit;
  if (!transposed) return std::nullopt;
  sparse::PatternChange turned = change;
  for (auto* blocks : {&turned.removed, &turned.added})
    for (sparse::BlockAt& at : *blocks) std::swap(at.row, at.col);
  if (auto misfit = transposed->weights.encode_update(turned, group))
    return turned_name(std::move(misfit));
  next_places_.resize(1);
  next_places_.front() = sparse::transpose_order(transposed->weights.updated());
  return std::nullopt;
}

void EncodedWeights::take_update(std::int64_t group) {
  forward.weights.take_update(group);
  if (!transposed) return;
  transposed->weights.take_update(group);
  places_[std::size_t(group)].swap(next_places_.front());
}

void EncodedWeights::set_values(std::span<const float> values, std::int64_t group) {
  if (!transposed) return forward.weights.set_values(values, group);
  const std::vector<std::int64_t>& places = places_[std::size_t(group)];
  transposed->weights.reserve_values(group);
  turned_values_.resize(places.size());
  forward.weights.set_values(values, group);
  for (std::size_t i = 0; i < places.size(); ++i)
    turned_values_[std::size_t(places[i])] = values[i];
  transposed->weights.set_values(turned_values_, group);
}

void EncodedWeights::make_tables(RehomeTables& tables, bool back) const {
  for (std::int64_t g = 0; g < forward.problem.size.g; ++g) {
    const std::vector<std::int64_t> turned = transposed->weights.bucket_positions(g);
    std::vector<std::int64_t> from = forward.weights.bucket_positions(g), to;
    for (const std::int64_t place : places_[std::size_t(g)])
      to.push_back(turned[std::size_t(place)]);
    if (back) from.swap(to);
    tables.set_pattern(g, from, to);
  }
}

void EncodedWeights::turn_back(std::span<const float> turned, std::span<float> gradients) const {
  std::size_t first = 0;  // of a group
  for (const std::vector<std::int64_t>& places : places_) {
    for (std::size_t i = 0; i < places.size(); ++i)
      gradients[first + i] = turned[first + std::size_t(places[i])];
    first += places.size();
  }
}

}  // namespace tessera::runtime::internal
