#include "tessera/layer/layer.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "tessera/layer/check_weights.hpp"
#include "tessera/sparse/value_range.hpp"

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

void Layer::check_group(std::int64_t group) const {
  const LayerFacts layer = facts();
  if (!layer.has_weights)
    throw Error(ErrorCode::InvalidArgument, "the layer has no weights yet; call set_weights first");
  if (group < 0 || group >= layer.problem.size.g)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("group is {}; it must be in 0..{}", group, layer.problem.size.g - 1));
}

std::optional<partitioner::Misfit> Layer::set_all(std::vector<sparse::CheckedCsr<float>> weights) {
  const auto call = backend().caller.enter("set_weights");
  Backend& own = changeable("set_weights");
  check_weights(facts().problem, weights);
  std::optional<partitioner::Misfit> misfit = own.set_weights(std::move(weights));
  if (!misfit) own.version = new_number();
  return misfit;
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
  check_group(group);
  std::optional<partitioner::Misfit> misfit = own.update_weights(change, group);
  if (!misfit) own.version = new_number();
  return misfit;
}

PreparedUpdate Layer::prepare_update(const sparse::PatternChange& change, std::int64_t group) {
  const auto call = backend().caller.enter("prepare_update");
  Backend& own = changeable("prepare_update");
  check_group(group);
  std::unique_ptr<PreparedUpdate::State> made = own.prepare(change, group);
  made->version = own.version;
  return PreparedUpdate(std::move(made));
}

void Layer::commit(PreparedUpdate&& update) {
  const auto call = backend().caller.enter("commit");
  Backend& own = changeable("commit");
  PreparedUpdate::State& prepared = update.state();
  if (prepared.misfit || prepared.version != own.version)
    throw Error(ErrorCode::InvalidArgument,
                "commit: this change was prepared for another layer or did not fit, or the layer "
                "has changed or prepared another change since; call prepare_update of this layer "
                "again");
  own.version = new_number();
  own.commit(prepared);
}

verify::Rounding Layer::rounding(Pass pass) const {
  if (!facts().passes[std::size_t(pass)])
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("rounding of {}: the problem does not include this pass", to_string(pass)));
  return backend().rounding(pass);
}

void Layer::set_values(std::span<const float> values, std::int64_t group) {
  const auto call = backend().caller.enter("set_values");
  Backend& own = backend();
  check_group(group);
  const std::size_t count = own.weights_of(group).values.size();
  if (values.size() != count)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("set_values: {} values are given; the layer has {} of group {}",
                            values.size(), count, group));
  sparse::check_range(values, own.facts().problem.data_type);
  own.version = new_number();
  own.set_values(values, group);
}

void Layer::change_parts(const ChangePart& change, std::int64_t group) {
  const auto call = backend().caller.enter("change_values");
  check_group(group);
  backend().version = new_number();
  backend().change_values(change, group);
}

}  // namespace tessera::layer
