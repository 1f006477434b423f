#include "tessera/runtime/block_softmax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/base/tile_map.hpp"
#include "tessera/runtime/internal/own_pass.hpp"
#include "tessera/runtime/internal/row_pass.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::runtime {

using internal::OwnPass;
using internal::RowPass;

namespace {

[[noreturn]] void refuse_softmax(const std::string& what) {
  throw_invalid("softmax of rows: " + what);
}

std::int64_t checked_values(std::span<const sparse::Csr<float>> masks) {
  std::int64_t values = 0;
  for (const sparse::Csr<float>& mask : masks) {
    sparse::check(mask);
    if (mask.block != masks.front().block)
      refuse_softmax(fmt::format("a mask has blocks of {} x {} and the first one of {} x {}",
                                 mask.block.rows, mask.block.cols, masks.front().block.rows,
                                 masks.front().block.cols));
    values += std::ssize(mask.values);
  }
  if (values > std::numeric_limits<std::int32_t>::max())
    refuse_softmax(
        fmt::format("the masks have {} values; at most 2^31 - 1 can be numbered", values));
  return values;
}

const ValueHomes& checked_homes(const ValueHomes& homes, std::int64_t values) {
  if (std::ssize(homes.positions) != values)
    refuse_softmax(fmt::format("there are homes for {} values; the masks have {}",
                               homes.positions.size(), values));
  const std::int64_t places = homes.per_tile * std::ssize(homes.tiles);
  std::vector<bool> used(static_cast<std::size_t>(std::max<std::int64_t>(places, 0)));
  for (const std::int64_t place : homes.positions) {
    if (place < 0 || place >= places || used[std::size_t(place)])
      refuse_softmax(
          fmt::format("place {} is not one of 0..{} that no other value has", place, places - 1));
    used[std::size_t(place)] = true;
  }
  return homes;
}

}  // namespace

ValueHomes bucket_homes(const FullyConnected& layer, const Problem& problem,
                        const planner::Plan& plan, const device::Machine& machine) {
  const partitioner::TileGrid grid = tile_grid(problem, plan, machine);
  const TileMap map({problem.size.g, grid.splits.x, grid.splits.y, grid.splits.z}, TileOrder::Yzx);
  ValueHomes homes;
  homes.per_tile = grid.blocks * grid.block.area();
  for (std::int64_t g = 0; g < problem.size.g; ++g) {
    const std::int64_t before = std::ssize(homes.tiles) * homes.per_tile;
    for (const std::int64_t position : layer.value_positions(g))
      homes.positions.push_back(before + position);
    for (std::int64_t x = 0; x < grid.splits.x; ++x)  // the order of bucket_index
      for (std::int64_t y = 0; y < grid.splits.y; ++y)
        for (std::int64_t z = 0; z < grid.splits.z; ++z)
          homes.tiles.push_back(map.tile({x, y, z, g}));
  }
  return homes;
}

struct BlockSoftmax::State {
  State(std::span<const sparse::Csr<float>> masks, DataType type, const device::Machine& machine,
        device::ExchangeMode mode, Executor& executor, const BlockSoftmaxOptions& options)
      : values(checked_values(masks)),
        homes(checked_homes(options.homes, values)),
        rows(internal::deal_rows(masks, machine.tiles)),
        softmax(machine, mode, executor, RowPass::Kind::Softmax, rows, homes, options.scale, type,
                options.resident),
        gradient(machine, mode, executor, RowPass::Kind::Gradient, rows, homes, options.scale, type,
                 options.resident) {}

  void check(std::span<const float> given, const char* name) const {
    if (std::ssize(given) == values) return;
    refuse_softmax(fmt::format("{} has {} values; the masks have {}", name, given.size(), values));
  }

  template <std::size_t kInputs>
  bool run(OwnPass<RowPass>& pass, const std::array<std::span<const float>, kInputs>& inputs,
           std::span<float> out, const PassOptions& options, device::Ledger& ledger) {
    for (const std::span<const float> input : inputs) check(input, "an input");
    check(out, "the output");
    const auto call = caller.enter("softmax");
    return verify::run_and_repair(options, [&](const PassOptions& once) {
      if (!pass.run(once, ledger, inputs)) return false;
      pass->finish(inputs, out, once);
      return true;
    });
  }

  std::int64_t values;
  ValueHomes homes;
  internal::DealtRows rows;
  OwnPass<RowPass> softmax, gradient;
  OneCaller caller;
};

BlockSoftmax::BlockSoftmax(std::span<const sparse::Csr<float>> masks, DataType type,
                           const device::Machine& machine, device::ExchangeMode mode,
                           Executor& executor, const BlockSoftmaxOptions& options)
    : state_(std::make_unique<State>(masks, type, machine, mode, executor, options)) {}
BlockSoftmax::~BlockSoftmax() = default;
BlockSoftmax::BlockSoftmax(BlockSoftmax&&) noexcept = default;

bool BlockSoftmax::softmax(std::span<const float> scores, std::span<float> out,
                           const PassOptions& options, device::Ledger& ledger) {
  return state_->run(state_->softmax, std::array{scores}, out, options, ledger);
}

bool BlockSoftmax::gradient(std::span<const float> softmax, std::span<const float> softmax_gradient,
                            std::span<float> out, const PassOptions& options,
                            device::Ledger& ledger) {
  return state_->run(state_->gradient, std::array{softmax, softmax_gradient}, out, options, ledger);
}

Cycles BlockSoftmax::planned() const { return state_->softmax->planned(); }
Cycles BlockSoftmax::gradient_planned() const { return state_->gradient->planned(); }
const Program& BlockSoftmax::program() const { return state_->softmax.program(); }
const Program& BlockSoftmax::gradient_program() const { return state_->gradient.program(); }
Bytes BlockSoftmax::high_water() const {
  return std::max(state_->softmax.high_water(), state_->gradient.high_water());
}

}  // namespace tessera::runtime
