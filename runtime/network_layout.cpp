#include "tessera/runtime/internal/network_layout.hpp"

namespace tessera::runtime::internal {

using device::SlotKind;

NetworkLayout::NetworkLayout(const WeightLayout& l, TileProgram& program)
    : layout(l), map(l.spec(Pass::Fwd).parts(), TileOrder::Yzx), program_(program) {}

void NetworkLayout::declare_resident(const std::string& of) {
  const auto add = [&](const char* name) {
    return program_.add_buffer(name + of, /*resident=*/true);
  };
  buckets.use.words = add("bucket words");
  if (has_grad_a_words()) grad_a_buckets_.use.words = add("words of GradA");
  buckets.use.payload = grad_a_buckets_.use.payload = add("bucket values");
  const std::int64_t word_bytes = layout.grid.word_bits / 8, value_bytes = bucket_value_bytes();
  placed_values_.resize(std::size_t(values_bytes()));
  for (const TileId tile : map.all()) {
    const auto add_words = [&](BufferId buffer, std::int64_t words) {
      return program_.add_slot(buffer, tile, 1, words * word_bytes);
    };
    const device::SlotId words = add_words(buckets.use.words, layout.grid.meta_words);
    const device::ByteRows place =
        one_row(placed_values_.data() + bucket_of(tile) * value_bytes, value_bytes);
    buckets.slots.push_back({words, program_.add_slot(buckets.use.payload, tile, 1, value_bytes,
                                                      SlotKind::Owned, 1, place)});
    if (has_grad_a_words())
      grad_a_buckets_.slots.push_back(
          {add_words(grad_a_buckets_.use.words, layout.grid.grad_a_words),
           buckets.on(tile).payload});
  }
}

void NetworkLayout::add_loaded(Uses& uses) const {
  uses.add({{}, {buckets.use.words, buckets.use.payload}});
  if (has_grad_a_words()) uses.writes.push_back(grad_a_buckets_.use.words);
}

void NetworkLayout::give(PassHomes& homes, Pass pass) const {
  homes.buckets = pass == Pass::GradA && has_grad_a_words() ? grad_a_buckets_ : buckets;
}

void NetworkLayout::load_words() const {
  const std::span<const partitioner::Buckets> groups = layout.weights.image().groups;
  const auto load = [&](const HomeBuckets& homes, Pass pass) {
    const BucketShape shape = values_shape(layout.spec(pass));
    for (const TileId tile : map.all())
      program_.engine().load(homes.on(tile).meta, home_words(groups, map.cell(tile), shape));
  };
  load(buckets, Pass::Fwd);
  if (has_grad_a_words()) load(grad_a_buckets_, Pass::GradA);
}

std::vector<UpdatedPart> NetworkLayout::parts() const {
  const std::int64_t count = values_per_bucket();
  std::vector<UpdatedPart> parts;
  for (const TileId tile : map.all()) {
    const std::int64_t first = bucket_of(tile) * count;
    parts.push_back({.tile = tile,
                     .values = {first, first + count},
                     .row_bytes = bucket_value_bytes(),
                     .weights = buckets.on(tile).payload,
                     .gradients = {},
                     .states = {}});
  }
  return parts;
}

}  // namespace tessera::runtime::internal
