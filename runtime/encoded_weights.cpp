#include "tessera/runtime/internal/encoded_weights.hpp"

#include <utility>

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
  if (second_ != nullptr) second_->take();
  places_.swap(next_places_);
  first_.take();
}

std::optional<partitioner::Misfit> EncodedWeights::set(
    std::span<const sparse::CheckedCsr<float>> weights, const partitioner::EncodeOptions& options) {
  if (second_ != nullptr) {
    partitioner::EncodeOptions own = options;
    if (own.even_load) own.even_load = second_cost_;
    if (auto misfit = second_->encode(turned(weights), own)) return turned_name(std::move(misfit));
  }
  if (auto misfit = first_.encode(weights, options)) return misfit;
  take();
  return std::nullopt;
}

std::optional<partitioner::Misfit> EncodedWeights::encode_update(
    const sparse::PatternChange& change, std::int64_t group) {
  if (auto misfit = first_.encode_update(change, group)) return misfit;
  if (second_ == nullptr) return std::nullopt;
  sparse::PatternChange turned = change;
  for (auto* blocks : {&turned.removed, &turned.added})
    for (sparse::BlockAt& at : *blocks) std::swap(at.row, at.col);
  if (auto misfit = second_->encode_update(turned, group)) return turned_name(std::move(misfit));
  next_places_.resize(1);
  next_places_.front() = sparse::transpose_order(second_->updated());
  return std::nullopt;
}

void EncodedWeights::take_update(std::int64_t group) {
  first_.take_update(group);
  if (second_ == nullptr) return;
  second_->take_update(group);
  places_[std::size_t(group)].swap(next_places_.front());
}

void EncodedWeights::set_values(std::span<const float> values, std::int64_t group) {
  if (second_ == nullptr) return first_.set_values(values, group);
  const std::vector<std::int64_t>& places = places_[std::size_t(group)];
  second_->reserve_values(group);
  turned_values_.resize(places.size());
  first_.set_values(values, group);
  for (std::size_t i = 0; i < places.size(); ++i)
    turned_values_[std::size_t(places[i])] = values[i];
  second_->set_values(turned_values_, group);
}

EncodedWeights::Positions EncodedWeights::positions(std::int64_t group) const {
  const std::vector<std::int64_t> turned = second_->bucket_positions(group);
  Positions all{first_.bucket_positions(group), {}};
  for (const std::int64_t place : places_[std::size_t(group)])
    all.second.push_back(turned[std::size_t(place)]);
  return all;
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
