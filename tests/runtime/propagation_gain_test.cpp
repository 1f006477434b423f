#include <gtest/gtest.h>

#include "tessera/base/random.hpp"
#include "tessera/runtime/propagation.hpp"

// What the exact y bounds and the missing last move save, beside PopSparse's nested loops.
namespace tessera::runtime {
namespace {

struct Count {
  std::int64_t moves = 0, visits = 0;
};

Count ours(const partitioner::Travel& travel, const Dims& splits) {
  Count count;
  for (const PropagationStep& step : propagation_steps(travel, splits, Served::AllOfZ)) {
    ++count.moves;
    count.visits += step.compute;
  }
  return count;
}

// PopSparse's loops of Fwd as they stand in its program builder: x outermost, one y bound for all
// x, which is a full turn as soon as anything moves along x; x distances that hold nothing are
// passed; z innermost; a move behind every step as long as steps are left.
class NestedLoops {
 public:
  NestedLoops(const partitioner::Travel& travel, const Dims& splits) : travel_(travel) {
    x_end_ = travel.x_end();
    y_end_ = x_end_ > 1 ? splits.y : travel.largest_y_end();
    z_end_ = splits.z;
    remaining_ = x_end_ * y_end_ * z_end_ - z_end_;
  }
  Count run() {
    if (remaining_ == 0) return count_;
    count_.moves = 1;  // the load
    std::int64_t y = 1;
    std::int64_t x = 0;
    if (y >= y_end_) y = 0, x = 1;
    for (; remaining_ > 0 && x < x_end_; ++x, y = 0) {
      if (travel_.y_end[std::size_t(x)] == 0)
        remaining_ -= (y_end_ - y) * z_end_;
      else
        columns(y);
      count_.moves += remaining_ > 0;
    }
    return count_;
  }

 private:
  void columns(std::int64_t y) {
    for (; remaining_ > 0 && y < y_end_; ++y) {
      for (std::int64_t z = 0; remaining_ > 0 && z < z_end_; ++z) {
        ++count_.visits;
        --remaining_;
        count_.moves += remaining_ > 0 && z_end_ > 1;
      }
      count_.moves += remaining_ > 0;
    }
  }
  const partitioner::Travel& travel_;
  std::int64_t x_end_ = 0, y_end_ = 0, z_end_ = 0, remaining_ = 0;
  Count count_;
};

Count nested(const partitioner::Travel& travel, const Dims& splits) {
  return NestedLoops(travel, splits).run();
}

TEST(PropagationGain, AFewSpillsAlongXNeedAFractionOfTheVisits) {
  partitioner::Travel travel;
  travel.y_end = {2, 1};  // one step along y, one along x
  const Dims splits{1, 4, 8, 2};
  EXPECT_EQ(nested(travel, splits).visits, 2 * 8 * 2 - 2);
  EXPECT_EQ(ours(travel, splits).visits, 2 * 2);
}

TEST(PropagationGain, TheLoopsOfPopSparseWalkEveryYOnceMore) {
  partitioner::Travel travel;
  travel.y_end = {3};
  const Dims splits{1, 1, 4, 2};
  // Two y distances of two z each; PopSparse moves along z behind both of the first column.
  EXPECT_EQ(nested(travel, splits).visits, 4);
  EXPECT_EQ(ours(travel, splits).visits, 4);
  EXPECT_EQ(nested(travel, splits).moves, 1 + 2 + 1 + 1);
  EXPECT_EQ(ours(travel, splits).moves, 4);
}

// Over random bounds: never more visits or moves, and in all far fewer.
TEST(PropagationGain, IsNeverALossAndMoreThanAThirdOfAllVisits) {
  Random random(23);
  Count sum_ours, sum_nested;
  for (int round = 0; round < 500; ++round) {
    const Dims splits{1, 1 + random.below(6), 1 + random.below(6), 1 + random.below(3)};
    partitioner::Travel travel;
    travel.y_end.assign(std::size_t(1 + random.below(splits.x)), 0);
    for (auto& y : travel.y_end) y = static_cast<std::int32_t>(random.below(splits.y + 1));
    travel.y_end.front() = std::max(travel.y_end.front(), 1);
    if (travel.y_end.back() == 0) travel.y_end.back() = 1;
    const Count a = ours(travel, splits), b = nested(travel, splits);
    EXPECT_LE(a.visits, b.visits) << "round " << round << ", " << to_string(splits);
    sum_ours = {sum_ours.moves + a.moves, sum_ours.visits + a.visits};
    sum_nested = {sum_nested.moves + b.moves, sum_nested.visits + b.visits};
  }
  RecordProperty("visits", int(sum_ours.visits));
  RecordProperty("nested_visits", int(sum_nested.visits));
  EXPECT_LT(3 * sum_ours.visits, 2 * sum_nested.visits);
  EXPECT_LT(sum_ours.moves, sum_nested.moves);
}

}  // namespace
}  // namespace tessera::runtime
