#include "tessera/runtime/internal/network_layout.hpp"

namespace tessera::runtime::internal {

using device::SlotKind;

NetworkLayout::NetworkLayout(const WeightLayout& l, TileProgram& program)
    : layout(l), map(l.spec(Pass::Fwd).parts(), TileOrder::Yzx), program_(program) {}

void NetworkLayout::declare_resident(const std::string& of) {
  const partitioner::TileGrid& grid = layout.grid;
  words_buffer_ = program_.add_buffer("bucket words" + of, /*resident=*/true);
  if (grid.separate_grad_a)
    grad_a_words_buffer_ = program_.add_buffer("words of GradA" + of, /*resident=*/true);
  values_buffer = program_.add_buffer("bucket values" + of, /*resident=*/true);
  const std::int64_t word_bytes = layout.grid.word_bits / 8;
  placed_values_.resize(std::size_t(values_bytes()));
  for (const TileId tile : map.all()) {
    words_.push_back(program_.add_slot(words_buffer_, tile, 1, grid.meta_words * word_bytes));
    const device::ByteRows place = one_row(
        placed_values_.data() + bucket_of(tile) * bucket_value_bytes(), bucket_value_bytes());
    values.push_back(
        program_.add_slot(values_buffer, tile, 1, bucket_value_bytes(), SlotKind::Owned, 1, place));
    if (grid.separate_grad_a)
      grad_a_words_.push_back(
          program_.add_slot(grad_a_words_buffer_, tile, 1, grid.grad_a_words * word_bytes));
  }
}

void NetworkLayout::add_loaded(Uses& uses) const {
  uses.writes.push_back(words_buffer_);
  uses.writes.push_back(values_buffer);
  if (layout.grid.separate_grad_a) uses.writes.push_back(grad_a_words_buffer_);
}

void NetworkLayout::give(PassHomes& homes, Pass pass) const {
  const bool own_words = pass == Pass::GradA && layout.grid.separate_grad_a;
  homes.bucket_buffers = {own_words ? grad_a_words_buffer_ : words_buffer_, values_buffer};
  for (std::size_t t = 0; t < values.size(); ++t)
    homes.buckets.push_back({own_words ? grad_a_words_[t] : words_[t], values[t]});
}

void NetworkLayout::load_words() const {
  const partitioner::Buckets& buckets = layout.weights.buckets(0);
  const partitioner::TileGrid& grid = layout.grid;
  const std::int64_t word_bytes = layout.grid.word_bits / 8;
  device::Engine& engine = program_.engine();
  for (const TileId tile : map.all()) {
    const std::int64_t bucket = bucket_of(tile);
    const auto t = std::size_t(tile.value);
    engine.load(words_[t], one_row(buckets.meta_words(bucket), grid.meta_words * word_bytes));
    if (grid.separate_grad_a)
      engine.load(grad_a_words_[t],
                  one_row(buckets.grad_a_meta_words(bucket), grid.grad_a_words * word_bytes));
  }
}

std::vector<UpdatedPart> NetworkLayout::parts() const {
  const std::int64_t count = values_per_bucket();
  std::vector<UpdatedPart> parts;
  for (const TileId tile : map.all()) {
    const std::int64_t first = bucket_of(tile) * count;
    parts.push_back({.tile = tile,
                     .values = {first, first + count},
                     .row_bytes = bucket_value_bytes(),
                     .weights = values[std::size_t(tile.value)],
                     .gradients = {},
                     .states = {}});
  }
  return parts;
}

std::int64_t NetworkLayout::bucket_of(TileId tile) const {
  const Cell c = map.cell(tile);
  return layout.grid.bucket_index(c.x, c.y, c.z);
}

}  // namespace tessera::runtime::internal
