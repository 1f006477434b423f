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

std::vector<BucketSlots> add_home_buckets(TileProgram& program, const TileMap& map,
                                          const BucketShape& shape, const BucketUse& use) {
  std::vector<BucketSlots> homes;
  for (const TileId tile : map.all()) homes.push_back(add_bucket_slots(program, tile, shape, use));
  return homes;
}

void load_home_buckets(device::Engine& engine, const TileMap& map, const BucketShape& shape,
                       std::span<const BucketSlots> homes, const BucketImage& image) {
  for (std::int64_t t = 0; t < map.tiles(); ++t) {
    const TileId tile(t);
    const Cell c = map.cell(tile);
    const partitioner::Buckets& buckets = image.groups[std::size_t(c.g)];
    const std::int64_t bucket = buckets.grid.bucket_index(c.x, c.y, c.z);
    const std::int64_t in_image = c.g * buckets.grid.buckets() + bucket;
    const BucketSlots home = homes[std::size_t(tile.value)];
    const void* words =
        shape.grad_a_words ? buckets.grad_a_meta_words(bucket) : buckets.meta_words(bucket);
    engine.load(home.meta, one_row(words, shape.meta_bytes));
    engine.load(home.payload,
                one_row(image.values + in_image * shape.payload_bytes, shape.payload_bytes));
  }
}

void gather_bucket(std::vector<device::Gather>& gathers, BucketSlots from, BucketSlots to) {
  gathers.push_back({{{from.meta, {0, 1}}}, {to.meta}});
  gathers.push_back({{{from.payload, {0, 1}}}, {to.payload}});
}

}  // namespace tessera::runtime::internal
