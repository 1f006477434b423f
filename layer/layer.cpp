#include "tessera/layer/layer.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "tessera/layer/check_weights.hpp"

namespace tessera::layer {

std::int64_t new_number() {
  static std::atomic<std::int64_t> last = 0;
  return ++last;
}

// Returns the backend of a layer whose pattern may change. The call has begun: no other thread
// changes what is asked for here.
Backend& Layer::changeable(const char* call) const {
  if (!facts().changes_pattern)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: the pattern of this layer stays (facts().changes_pattern); make a "
                            "new layer of the new pattern",
                            call));
  return backend();
}

std::optional<partitioner::Misfit> Layer::set_all(std::vector<sparse::CheckedCsr<float>> weights) {
  const auto call = backend().caller.enter("set_weights");
  Backend& own = changeable("set_weights");
  check_weights(facts().problem, weights);
  return own.set_weights(std::move(weights));
}

std::optional<partitioner::Misfit> Layer::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights) {
  return set_all({weights.begin(), weights.end()});
}

std::optional<partitioner::Misfit> Layer::set_weights(sparse::CheckedCsr<float> weights) {
  std::vector<sparse::CheckedCsr<float>> one;
  one.push_back(std::move(weights));
  return set_all(std::move(one));
}

std::optional<partitioner::Misfit> Layer::update_weights(const sparse::PatternChange& change,
                                                         std::int64_t group) {
  const auto call = backend().caller.enter("update_weights");
  Backend& own = changeable("update_weights");
  return own.update_weights(change, group);
}

PreparedUpdate Layer::prepare_update(const sparse::PatternChange& change, std::int64_t group) {
  const auto call = backend().caller.enter("prepare_update");
  Backend& own = changeable("prepare_update");
  return PreparedUpdate(own.prepare(change, group));
}

void Layer::commit(PreparedUpdate&& update) {
  const auto call = backend().caller.enter("commit");
  Backend& own = changeable("commit");
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
