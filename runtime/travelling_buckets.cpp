#include "tessera/runtime/internal/travelling_buckets.hpp"

#include <fmt/format.h>

#include <string>

namespace tessera::runtime::internal {
namespace {

constexpr Phase kPhase = Phase::Propagate;
constexpr Axis kAxes[] = {Axis::X, Axis::Y, Axis::Z};
constexpr const char* kBufferNames[] = {"first", "second"};

}  // namespace

void TravellingBuckets::declare_buffers(TileProgram& program) {
  if (!loop_.possible()) return;
  for (std::size_t b = 0; b < 2; ++b) {
    uses_[b] = {program.add_buffer(std::string(kBufferNames[b]) + " passing words"),
                program.add_buffer(std::string(kBufferNames[b]) + " passing values")};
    for (const TileId tile : map_.all())
      buffers_[b].push_back(add_bucket_slots(program, tile, shape_, uses_[b]));
  }
  // The first displacement of most patterns that spill: along y, or along x if y is not cut.
  first_by_ = map_.splits().y > 1   ? Displacement{0, 1, 0}
              : map_.splits().x > 1 ? Displacement{1, 0, 0}
                                    : Displacement{0, 0, 1};
}

void TravellingBuckets::declare_move(TileProgram& program, std::span<const BucketSlots> homes,
                                     const std::vector<BufferId>& read) {
  homes_.assign(homes.begin(), homes.end());
  program.when(
      "nothing has left home", [this] { return loop_.first(); },
      [&] {
        first_load_ = program.exchange_of(moved_by(first_by_, homes_, 0));
        program.exchange(kPhase, {read, {uses_[0].words, uses_[0].payload}}, first_load_,
                         [this, &program] { load(program.engine()); });
      });
  declare_shifts(program);
}

void TravellingBuckets::declare_shifts(TileProgram& program) {
  for (const Axis axis : kAxes)
    for (std::size_t into = 0; into < 2; ++into) {
      if (along(map_.splits(), axis) == 1) continue;
      const BucketUse from = uses_[1 - into], to = uses_[into];
      const Displacement by{axis == Axis::X, axis == Axis::Y, axis == Axis::Z};
      program.when(
          fmt::format("the next move is along {}, into the {} buffer", to_string(axis),
                      kBufferNames[into]),
          [this, axis, into] { return loop_.shifts(axis) && loop_.into() == into; },
          [&] {
            program.exchange(kPhase, {{from.words, from.payload}, {to.words, to.payload}},
                             moved_by(by, buffers_[1 - into], into));
          });
    }
}

void TravellingBuckets::declare_return(TileProgram& program, std::span<const BucketSlots> homes,
                                       BufferId buffer) {
  for (std::size_t from = 0; from < 2; ++from) {
    std::vector<device::Gather> gathers;
    for (const TileId tile : map_.all()) {
      const auto t = std::size_t(tile.value);
      gathers.push_back({{{buffers_[from][t].payload, {0, 1}}}, {homes[t].payload}});
    }
    program.when(
        std::string("the ") + kBufferNames[from] + " buffer holds them",
        [this, from] { return loop_.into() == from; },
        [&] { program.exchange(kPhase, {{uses_[from].payload}, {buffer}}, std::move(gathers)); });
  }
}

void TravellingBuckets::add_words_and_payloads(std::vector<BufferId>& ids) const {
  for (const BucketUse& use : uses_) ids.insert(ids.end(), {use.words, use.payload});
}

void TravellingBuckets::add_payloads(std::vector<BufferId>& ids) const {
  for (const BucketUse& use : uses_) ids.push_back(use.payload);
}

// The exchange by first_by_ is prepared with the program.
void TravellingBuckets::load(device::Engine& engine) {
  const Displacement by = loop_.now().after;
  if (by == first_by_) return engine.exchange(kPhase, *first_load_);
  if (by != other_by_) {
    other_load_ = engine.prepare(moved_by(by, homes_, 0));
    other_by_ = by;
  }
  engine.exchange(kPhase, other_load_);
}

std::vector<device::Gather> TravellingBuckets::moved_by(Displacement by,
                                                        std::span<const BucketSlots> from,
                                                        std::size_t into) const {
  std::vector<device::Gather> gathers;
  for (const TileId tile : map_.all()) {
    const TileId source = map_.tile(map_.moved(map_.cell(tile), {-by.x, -by.y, -by.z}));
    gather_bucket(gathers, from[std::size_t(source.value)],
                  buffers_[into][std::size_t(tile.value)]);
  }
  return gathers;
}

}  // namespace tessera::runtime::internal
