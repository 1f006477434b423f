#include "tessera/runtime/internal/travel_loop.hpp"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {
namespace {

// The travel words are x_end, the largest y_end and z_parts, then y_end for every x distance.
constexpr std::int64_t kFirstBound = 3;
constexpr std::int64_t kWordBytes = sizeof(std::uint32_t);

}  // namespace

bool TravelLoop::possible() const {
  return splits_.x * splits_.y * (served_ == Served::OwnZ ? splits_.z : 1) > 1;
}

TileId TravelLoop::control_tile(const device::Engine& engine) const {
  return TileId(std::min(engine.machine().tiles - 1, splits_.product()));
}

void TravelLoop::declare(TileProgram& program) {
  if (!possible()) return;
  words_ = program.add_buffer("travel words", /*resident=*/true);
  slot_ =
      program.add_slot(words_, control_tile(program.engine()), kFirstBound + splits_.x, kWordBytes);
}

void TravelLoop::load(device::Engine& engine, std::span<const std::uint32_t> travel_words) {
  read_ = begins_distance_ = first_ = began_ = homeward_ = false;
  if (!possible()) return;
  engine.load(slot_, rows_at(travel_words.data(), std::ssize(travel_words), kWordBytes));
}

void TravelLoop::read_bounds(device::ByteRows words) {
  const auto word = [&](std::int64_t i) {
    std::uint32_t value = 0;
    std::memcpy(&value, words.data + i * words.stride, sizeof(value));
    return value;
  };
  const std::int64_t x_end = word(0);
  bool legal = words.rows == kFirstBound + x_end;
  travel_.y_end.clear();
  for (std::int64_t x = 0; legal && x < x_end; ++x) {
    const std::int64_t y_end = word(kFirstBound + x);
    legal = y_end <= splits_.y;
    travel_.y_end.push_back(static_cast<std::int32_t>(y_end));
  }
  if (!legal)  // possible only if memory was damaged
    throw Error(ErrorCode::CheckFailed, "self-check: travel words beyond the layer's partition");
}

void TravelLoop::declare_loops(TileProgram& program, const std::function<void()>& body) {
  program.controlled_repeat(
      "a distance inside the travel bounds is left", {control_tile(program.engine()), {words_}},
      [this, &program] { return next_distance(program.engine()); },
      [&] { program.repeat("a batch part of it is left", [this] { return next(); }, body); });
}

bool TravelLoop::next_distance(const device::Engine& engine) {
  if (!read_) {
    read_bounds(engine.view(slot_));
    propagation_steps(travel_, splits_, served_, steps_);
    at_ = 0;
    read_ = true;
  }
  begins_distance_ = at_ < steps_.size();
  return begins_distance_;
}

bool TravelLoop::next() {
  const bool more = at_ < steps_.size() && (begins_distance_ || steps_[at_].shift == Axis::Z);
  if (!more) return false;
  begins_distance_ = false;
  first_ = at_ == 0;
  into_ = first_ ? 0 : 1 - into_;
  began_ = true;
  now_ = steps_[at_++];
  return true;
}

bool TravelLoop::next_home() {
  if (!homeward_) {
    return_home(now_.after, splits_, steps_);
    at_ = 0;
    homeward_ = true;
    first_ = false;
  }
  if (at_ == steps_.size()) return false;
  into_ = 1 - into_;
  now_ = steps_[at_++];
  return true;
}

}  // namespace tessera::runtime::internal
