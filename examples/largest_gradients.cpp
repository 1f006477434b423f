// Moves weights of a sparse layer to where its gradient is largest, on a modelled machine. The
// tiles look for the places beside the buckets of the layer, in rounds of the dense gradient that
// is never stored; this computer finds the same places in panels. The layer then stores these
// blocks instead of others, without being built again.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/tessera.hpp"

namespace {

using namespace tessera;

// Returns the blocks with the smallest weights, row by row.
std::vector<sparse::BlockAt> smallest_blocks(const sparse::Csr<float>& weights, std::size_t count) {
  std::vector<std::pair<float, sparse::BlockAt>> blocks;
  const std::int64_t area = weights.block.area();
  for (std::int32_t row = 0; row < weights.block_rows(); ++row)
    for (auto i = weights.row_begin[std::size_t(row)]; i < weights.row_begin[std::size_t(row) + 1];
         ++i) {
      float sum = 0;
      for (std::int64_t e = 0; e < area; ++e)
        sum += std::abs(weights.values[std::size_t(i * area + e)]);
      blocks.push_back({sum, {row, weights.col[std::size_t(i)]}});
    }
  std::sort(blocks.begin(), blocks.end());
  std::vector<sparse::BlockAt> places;
  for (std::size_t i = 0; i < count; ++i) places.push_back(blocks[i].second);
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

int main() {
  const Problem problem{.size = {1, 512, 256, 32},
                        .block = {4, 4},
                        .density = 0.1,
                        .data_type = DataType::Half,
                        .grad_a = true,
                        .grad_w = true};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 64;
  const auto executor = make_executor();
  runtime::FullyConnected layer(problem, planner::plan_or_throw(problem, machine), machine,
                                device::ExchangeMode::Share, *executor);
  host::HostLayer on_host(problem, host::read_host_cpu(), *executor);
  const auto weights = sparse::random_pattern(512, 256, {4, 4}, 0.1, /*seed=*/1);
  if (const auto misfit = layer.set_weights(weights)) throw std::runtime_error(misfit->message);
  on_host.set_weights(weights);

  const auto q_grad = random_matrix<Half>(512, 32, 2), s = random_matrix<Half>(256, 32, 3);
  constexpr std::int64_t kMoved = 100;
  const runtime::LargestGradients found =
      layer.largest_gradients<Half>(kMoved, q_grad.view(), s.view());
  const bool same =
      on_host.largest_gradients<Half>(kMoved, q_grad.view(), s.view()) == found.places;
  std::printf("%zu of %lld free blocks found in %lld cycles, on this computer the same: %s\n",
              found.places.size(), static_cast<long long>(64 * 128 - weights.blocks()),
              static_cast<long long>(found.ledger.total().value), same ? "yes" : "no");

  const sparse::PatternChange change{.removed = smallest_blocks(layer.weights(), kMoved),
                                     .added = found.places};
  if (const auto misfit = layer.update_weights(change)) throw std::runtime_error(misfit->message);
  std::printf("the layer stores %lld blocks, %zu of them new\n",
              static_cast<long long>(layer.weights().blocks()), change.added.size());
  return same ? 0 : 1;
}
