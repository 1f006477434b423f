#include "tessera/runtime/internal/travelling_buckets.hpp"

#include <fmt/format.h>

#include <string>

#include "tessera/base/error.hpp"

namespace tessera::runtime::internal {
namespace {

constexpr Phase kPhase = Phase::Propagate;
constexpr Axis kAxes[] = {Axis::X, Axis::Y, Axis::Z};
constexpr const char* kBufferNames[] = {"first", "second"};

std::int64_t count_along(const Dims& splits, Axis axis) {
  return axis == Axis::X ? splits.x : axis == Axis::Y ? splits.y : splits.z;
}

}  // namespace

void TravellingBuckets::declare_buffers(BoundProgram& program) {
  if (!loop_.possible()) return;
  for (std::size_t b = 0; b < 2; ++b)
    uses_[b] = {program.add_buffer(std::string(kBufferNames[b]) + " passing words"),
                program.add_buffer(std::string(kBufferNames[b]) + " passing values")};
}

void TravellingBuckets::declare_move(BoundProgram& program, device::Engine& engine,
                                     const std::vector<BufferId>& homes) {
  program.when(
      "nothing has left home", [this] { return loop_.first(); },
      [&] {
        nodes_.emplace_back(
            program.step(NodeKind::Exchange, kPhase, {homes, {uses_[0].words, uses_[0].payload}},
                         [this, &engine] { load(engine); }),
            &load_);
      });
  declare_shifts(program, engine);
}

void TravellingBuckets::declare_shifts(BoundProgram& program, device::Engine& engine) {
  for (const Axis axis : kAxes)
    for (std::size_t into = 0; into < 2; ++into) {
      if (count_along(map_.splits(), axis) == 1) continue;
      const auto a = static_cast<std::size_t>(axis);
      const BucketUse from = uses_[1 - into], to = uses_[into];
      program.when(
          fmt::format("the next move is along {}, into the {} buffer", to_string(axis),
                      kBufferNames[into]),
          [this, axis, into] { return loop_.shifts(axis) && loop_.into() == into; },
          [&] {
            const device::Exchange* const shift = &shifts_[a][into];
            nodes_.emplace_back(program.step(NodeKind::Exchange, kPhase,
                                             {{from.words, from.payload}, {to.words, to.payload}},
                                             [&engine, shift] { engine.exchange(kPhase, *shift); }),
                                shift);
          });
    }
}

void TravellingBuckets::declare_return(BoundProgram& program, device::Engine& engine,
                                       BufferId homes) {
  for (std::size_t from = 0; from < 2; ++from)
    program.when(
        std::string("the ") + kBufferNames[from] + " buffer holds them",
        [this, from] { return loop_.into() == from; },
        [&] {
          const device::Exchange* const back = &returns_[from];
          nodes_.emplace_back(
              program.step(NodeKind::Exchange, kPhase, {{uses_[from].payload}, {homes}},
                           [&engine, back] { engine.exchange(kPhase, *back); }),
              back);
        });
}

void TravellingBuckets::add_slots(BoundProgram& program, device::Engine& engine) {
  if (!loop_.possible()) return;
  for (std::size_t b = 0; b < 2; ++b)
    for (const TileId tile : map_.all())
      buffers_[b].push_back(add_bucket_slots(program, engine, tile, shape_, uses_[b]));
}

void TravellingBuckets::prepare(BoundProgram& program, const device::Engine& engine,
                                std::span<const BucketSlots> homes) {
  if (!loop_.possible()) return;
  homes_.assign(homes.begin(), homes.end());
  for (const Axis axis : kAxes)
    for (std::size_t b = 0; b < 2; ++b)
      shifts_[static_cast<std::size_t>(axis)][b] = shift_to(engine, axis, b);
  for (std::size_t b = 0; b < 2; ++b) returns_[b] = return_from(engine, b);
  // The first displacement of most patterns that spill: along y, or along x if y is not cut.
  loaded_by_ = map_.splits().y > 1   ? Displacement{0, 1, 0}
               : map_.splits().x > 1 ? Displacement{1, 0, 0}
                                     : Displacement{0, 0, 1};
  load_ = load_by(engine, loaded_by_);
  for (const auto& [node, exchange] : nodes_) program.set_moves(node, exchange->moved);
}

void TravellingBuckets::add_words_and_payloads(std::vector<BufferId>& ids) const {
  for (const BucketUse& use : uses_) ids.insert(ids.end(), {use.words, use.payload});
}

void TravellingBuckets::add_payloads(std::vector<BufferId>& ids) const {
  for (const BucketUse& use : uses_) ids.push_back(use.payload);
}

void TravellingBuckets::load(device::Engine& engine) {
  const Displacement by = loop_.now().after;
  if (by != loaded_by_) {
    load_ = load_by(engine, by);
    loaded_by_ = by;
  }
  engine.exchange(kPhase, load_);
}

device::Exchange TravellingBuckets::load_by(const device::Engine& engine, Displacement by) const {
  std::vector<device::Gather> gathers;
  for (const TileId tile : map_.all()) {
    const TileId from = map_.tile(map_.moved(map_.cell(tile), {-by.x, -by.y, -by.z}));
    gather_bucket(gathers, homes_[std::size_t(from.value)], buffers_[0][std::size_t(tile.value)]);
  }
  return engine.prepare(std::move(gathers));
}

device::Exchange TravellingBuckets::shift_to(const device::Engine& engine, Axis axis,
                                             std::size_t buffer) const {
  std::vector<device::Gather> gathers;
  const Cell back{-std::int64_t{axis == Axis::X}, -std::int64_t{axis == Axis::Y},
                  -std::int64_t{axis == Axis::Z}};
  if (count_along(map_.splits(), axis) == 1) return engine.prepare({});
  for (const TileId tile : map_.all()) {
    const TileId from = map_.tile(map_.moved(map_.cell(tile), back));
    gather_bucket(gathers, buffers_[1 - buffer][std::size_t(from.value)],
                  buffers_[buffer][std::size_t(tile.value)]);
  }
  return engine.prepare(std::move(gathers));
}

device::Exchange TravellingBuckets::return_from(const device::Engine& engine,
                                                std::size_t buffer) const {
  std::vector<device::Gather> gathers;
  for (const TileId tile : map_.all()) {
    const auto t = std::size_t(tile.value);
    gathers.push_back({{{buffers_[buffer][t].payload, {0, 1}}}, {homes_[t].payload}});
  }
  return engine.prepare(std::move(gathers));
}

}  // namespace tessera::runtime::internal
