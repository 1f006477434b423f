#include "tessera/train/machine_layer.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "tessera/base/half.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/runtime/dense_grad_w.hpp"
#include "tessera/train/internal/half_operands.hpp"

namespace tessera::train {
namespace {

// The words of a bucket name the places of its values, so equal words mean equal places.
std::int64_t buckets_that_differ(const decltype(partitioner::Buckets::meta)& before,
                                 const partitioner::Buckets& after) {
  const std::int64_t buckets = after.grid.buckets();
  std::int64_t count = 0;
  std::visit(
      [&](const auto& now) {
        const auto& old = std::get<std::decay_t<decltype(now)>>(before);
        const std::int64_t words = std::ssize(now) / buckets;
        for (auto at = now.begin(); at != now.end(); at += words)
          count += !std::equal(at, at + words, old.begin() + (at - now.begin()));
      },
      after.meta);
  return count;
}

std::int64_t bytes_of_a_bucket(const partitioner::TileGrid& grid) {
  return (grid.meta_words + grid.grad_a_words) * grid.word_bits / 8;
}

}  // namespace

void MachineLayer::count_update() {
  ++traffic_.updates;
  const partitioner::Buckets& now = layer_->buckets();
  const std::int64_t differ = buckets_that_differ(words_, now);
  const std::int64_t value_bytes = now.values_per_bucket() * bytes_of(now.grid.data_type);
  const Bytes values(now.grid.buckets() * value_bytes);
  // The rest steers propagation and moves values to a layout of GradA; it is sent as a whole.
  const Bytes rest =
      layer_->pattern_bytes() - values - Bytes(now.grid.buckets() * bytes_of_a_bucket(now.grid));
  traffic_.words += Bytes(differ * bytes_of_a_bucket(now.grid)) + rest;
  traffic_.values += Bytes(differ * value_bytes);
  traffic_.read += values;
}

std::vector<sparse::BlockAt> MachineLayer::largest_gradients(const sparse::Csr<float>& taken,
                                                             std::int64_t k, BlockScore pool,
                                                             const GradientBatch& batch,
                                                             std::string_view name) {
  if (k == 0) return {};
  const Stopwatch watch;
  const Problem problem = layer_->facts().problem;
  runtime::DenseGradW search =
      runtime::search_for(problem, k, machine_, device::ExchangeMode::Share, *executor_);
  runtime::LargestGradients found =
      problem.data_type == DataType::Half
          ? search.largest<Half>(
                taken, k, pool,
                internal::rounded(batch.q_grad, internal::scale_of(batch.q_grad)).view(),
                internal::rounded(batch.s).view(), name)
          : search.largest<float>(taken, k, pool, batch.q_grad, batch.s, name);
  ++search_.searches;
  search_.runs += found.runs;
  for (const device::PhaseTotal& phase : found.ledger.phases())
    (phase.phase == Phase::Reduce ? search_.selection : search_.gradient) += phase.total();
  search_.upload += found.upload;
  search_.download += found.download;
  search_.seconds += watch.seconds();
  return std::move(found.places);
}

}  // namespace tessera::train
