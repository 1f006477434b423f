#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

device::ByteRows rows_at(const void* data, std::int64_t rows, std::int64_t row_bytes) {
  return {static_cast<std::byte*>(const_cast<void*>(data)), rows, row_bytes, row_bytes};
}

BucketShape values_shape(const PassSpec& spec) {
  const bool own_words = spec.method == codelets::Method::ElementGradA;
  const auto& grid = spec.grid;
  const std::int64_t words = own_words ? grid.grad_a_words : grid.meta_words;
  return {own_words, words * spec.word_bytes(),
          grid.blocks * grid.block.area() * bytes_of(spec.data_type())};
}

BucketSlots add_bucket_slots(TileProgram& program, TileId tile, const BucketShape& shape,
                             const BucketUse& use, std::int64_t buckets) {
  const auto add = [&](BufferId buffer, std::int64_t bytes) {
    return program.add_slot(buffer, tile, 1, bytes, device::SlotKind::Landing, buckets);
  };
  return {add(use.words, shape.meta_bytes), add(use.payload, shape.payload_bytes)};
}

void add_other_words(TileProgram& program, const PassSpec& spec, std::span<const TileId> tiles) {
  if (!spec.grid.separate_grad_a) return;
  const bool reads_own = spec.method == codelets::Method::ElementGradA;
  const BufferId buffer = program.add_buffer("words of another pass", /*resident=*/true);
  for (const TileId tile : tiles)
    program.add_slot(
        buffer, tile, 1,
        (reads_own ? spec.grid.meta_words : spec.grid.grad_a_words) * spec.word_bytes());
}

HomeBuckets add_home_buckets(TileProgram& program, const PassSpec& spec, const TileMap& map) {
  const std::vector<TileId> tiles = map.all();
  add_other_words(program, spec, tiles);
  HomeBuckets homes{{program.add_buffer("bucket words", /*resident=*/true),
                     program.add_buffer("bucket values", /*resident=*/true)},
                    {}};
  for (const TileId tile : tiles)
    homes.slots.push_back(add_bucket_slots(program, tile, values_shape(spec), homes.use));
  return homes;
}

device::ByteRows home_words(std::span<const partitioner::Buckets> groups, const Cell& cell,
                            const BucketShape& shape) {
  const partitioner::Buckets& buckets = groups[std::size_t(cell.g)];
  const std::int64_t bucket = buckets.grid.bucket_index(cell.x, cell.y, cell.z);
  const void* const words =
      shape.grad_a_words ? buckets.grad_a_meta_words(bucket) : buckets.meta_words(bucket);
  return one_row(words, shape.meta_bytes);
}

void load_home_buckets(device::Engine& engine, const TileMap& map, const BucketShape& shape,
                       const HomeBuckets& homes, const BucketImage& image) {
  for (std::int64_t t = 0; t < map.tiles(); ++t) {
    const TileId tile(t);
    const Cell c = map.cell(tile);
    const std::int64_t in_image = bucket_of(image.groups[std::size_t(c.g)].grid, c);
    engine.load(homes.on(tile).meta, home_words(image.groups, c, shape));
    engine.load(homes.on(tile).payload,
                one_row(image.values + in_image * shape.payload_bytes, shape.payload_bytes));
  }
}

void gather_bucket(std::vector<device::Gather>& gathers, BucketSlots from, BucketSlots to) {
  gathers.push_back({{{from.meta, {0, 1}}}, {to.meta}});
  gathers.push_back({{{from.payload, {0, 1}}}, {to.payload}});
}

}  // namespace tessera::runtime::internal
