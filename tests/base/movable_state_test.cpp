#include "tessera/base/movable_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tessera/tests/support/message_of.hpp"

namespace tessera {

class Counter {
 public:
  Counter() : state_(std::make_unique<State>()) {}
  int next() { return ++state_->count; }
  int count() const { return (*state_).count; }

 private:
  struct State {
    int count = 0;
  };
  MovableState<State> state_;
};

namespace {

TEST(MovableState, GoesToTheObjectThatItWasMovedTo) {
  Counter first;
  first.next();
  Counter second(std::move(first));
  EXPECT_EQ(second.next(), 2);
}

TEST(MovableState, RefusesEveryUseOfAnObjectThatWasMovedFromAndNamesItsClass) {
  Counter first;
  const Counter second(std::move(first));
  EXPECT_THAT(test::refusal([&] { first.next(); }),  // NOLINT: the use is what is tested
              testing::HasSubstr("this tessera::Counter was moved from"));
  test::refusal([&] { static_cast<void>(first.count()); });
}

TEST(MovableState, LetsAnObjectThatWasMovedFromBeAssignedTo) {
  Counter first;
  const Counter second(std::move(first));
  first = Counter();
  EXPECT_EQ(first.next(), 1);
}

}  // namespace
}  // namespace tessera
