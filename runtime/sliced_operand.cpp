#include "tessera/runtime/internal/sliced_operand.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/planner/homes.hpp"
#include "tessera/runtime/internal/spread.hpp"

namespace tessera::runtime::internal {

SlicedOperand::SlicedOperand(const PassSpec& spec, Pass pass, Name name, TileOrder order,
                             TileProgram& program)
    : spec_(spec),
      name_(name),
      is_spread_(spreads_operands(spec.placement, pass)),
      home_map_(spec.parts(), TileOrder::Yzx),
      map_(spec.parts(), order),
      program_(program) {}

std::int64_t SlicedOperand::sharers() const {
  return name_ == Name::S ? spec_.grid.splits.x : spec_.grid.splits.y;
}

// The operand of the host has the padded size.
void SlicedOperand::come_from(const TensorHome* home_in_network) {
  from_ = home_in_network;
  const Dims& padded = spec_.grid.size;
  const bool is_s = name_ == Name::S;
  const std::int64_t rows = from_ != nullptr ? from_->rows : is_s ? padded.y : padded.x;
  const std::int64_t cols = from_ != nullptr ? from_->cols : padded.z;
  const planner::Homes homes({spec_.groups, rows, rows, cols}, spec_.parts(), padded,
                             spec_.grid.block);
  slices_ = tensor_home(is_s ? homes.slices_s(map_.order()) : homes.slices_dq(map_.order()),
                        Shares::OfAllTiles);
  if (from_ == nullptr)
    home_ = tensor_home(is_s ? homes.operand_s() : homes.operand_dq(), Shares::OfAllTiles);
}

// A slice that one tile needs is loaded to its slot at once, if that tile has its cell at home.
bool SlicedOperand::is_here(TileId tile) const {
  return sharers() == 1 && !is_spread_ && home_map_.cell(tile) == map_.cell(tile);
}

bool SlicedOperand::has_home() const {
  return std::ranges::any_of(home_.shares, [&](const HomeShare& s) { return !is_here(s.tile); });
}

// Moves put slices together, in memory of the slots.
device::SlotId SlicedOperand::add_slot(TileId tile, std::int64_t most_rows) {
  HomeShare& slice = slices_.shares[std::size_t(tile.value)];
  slice.slot =
      program_.add_slot(slices_.buffer, tile, most_rows, slice.width * bytes_of(spec_.data_type()),
                        from_ != nullptr ? device::SlotKind::Owned : device::SlotKind::Landing);
  return slice.slot;
}

void SlicedOperand::add_home_slot(TileId tile) {
  if (from_ != nullptr) return;
  HomeShare& share = home_.shares[std::size_t(tile.value)];
  share.slot = is_here(tile) ? slices_.shares[std::size_t(tile.value)].slot
                             : program_.add_slot(home_.buffer, tile, share.rows(),
                                                 share.width * bytes_of(spec_.data_type()));
}

void SlicedOperand::add_loaded(Uses& uses) const {
  TESSERA_ASSERT(from_ == nullptr);
  if (sharers() == 1 && !is_spread_) uses.writes.push_back(slices_.buffer);
  if (has_home()) uses.writes.push_back(home_.buffer);
}

void SlicedOperand::load(const device::ByteRows& operand) const {
  load_rows(program_.engine(), home_, operand, bytes_of(spec_.data_type()));
}

void SlicedOperand::bring(Fetches& fetches, Cleared cleared) const {
  if (from_ != nullptr) return fetches.add(*from_, slices_, cleared);
  if (!has_home()) return;
  const auto axis = name_ == Name::S ? &Cell::x : &Cell::y;
  fetches.add({home_, slices_, home_map_, map_, axis, sharers()}, [this](const HomeShare& slice) {
    return is_spread_ ? spread_senders(spec_, slices_, slice, program_.engine().machine().tiles)
                      : 0;
  });
}

}  // namespace tessera::runtime::internal
