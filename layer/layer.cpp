#include "tessera/layer/layer.hpp"

#include <fmt/format.h>

#include <vector>

namespace tessera::layer {

// Returns the backend of a layer whose pattern may change.
Backend& Layer::changeable(const char* call) const {
  if (!facts().changes_pattern)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: the pattern of this layer stays (facts().changes_pattern); make a "
                            "new layer of the new pattern",
                            call));
  return backend();
}

std::optional<partitioner::Misfit> Layer::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights) {
  Backend& own = changeable("set_weights");
  const auto call = own.caller.enter("set_weights");
  return own.set_weights({weights.begin(), weights.end()});
}

std::optional<partitioner::Misfit> Layer::set_weights(sparse::CheckedCsr<float> weights) {
  Backend& own = changeable("set_weights");
  const auto call = own.caller.enter("set_weights");
  std::vector<sparse::CheckedCsr<float>> one;
  one.push_back(std::move(weights));
  return own.set_weights(std::move(one));
}

std::optional<partitioner::Misfit> Layer::update_weights(const sparse::PatternChange& change,
                                                         std::int64_t group) {
  Backend& own = changeable("update_weights");
  const auto call = own.caller.enter("update_weights");
  return own.update_weights(change, group);
}

PreparedUpdate Layer::prepare_update(const sparse::PatternChange& change, std::int64_t group) {
  Backend& own = changeable("prepare_update");
  const auto call = own.caller.enter("prepare_update");
  return PreparedUpdate(own.prepare(change, group));
}

void Layer::commit(PreparedUpdate&& update) {
  Backend& own = changeable("commit");
  const auto call = own.caller.enter("commit");
  own.commit(update.state());
}

void Layer::set_values(std::span<const float> values, std::int64_t group) {
  const auto call = backend().caller.enter("set_values");
  backend().set_values(values, group);
}

void Layer::change_parts(const ChangePart& change, std::int64_t group) {
  const auto call = backend().caller.enter("change_values");
  backend().change_values(change, group);
}

}  // namespace tessera::layer
