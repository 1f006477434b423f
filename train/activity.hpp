#pragma once

#include <array>
#include <cstddef>

#include "tessera/base/stopwatch.hpp"
#include "tessera/planner/network.hpp"

namespace tessera::train {

// The activities that a training run spends its time on.
enum class Activity {
  Batch,       // reading, normalising and transposing pictures
  Forward,     // Fwd passes, bias and ReLU
  Loss,        // cross-entropy and its gradient
  GradW,       // gradients of weights and biases
  GradA,       // gradients of inputs, and ReLU's derivative
  Optimiser,   // steps on weights and biases, and the new values in every layout
  Rewire,      // drop, growth, what carries over, new patterns into the layers
  Evaluation,  // the test set
};
inline constexpr std::size_t kActivities = 8;

// Returns the activity that a kind of work of a network belongs to.
Activity activity_of(planner::NetworkWork work);

// Returns a name for people and for keys of JSON, for example "forward" or "grad_w".
const char* to_string(Activity activity);

// Seconds by activity.
struct ActivitySeconds {
  std::array<double, kActivities> of{};

  double& operator[](Activity activity) { return of[std::size_t(activity)]; }
  double operator[](Activity activity) const { return of[std::size_t(activity)]; }
  double sum() const;

  // Calls `body` and adds the time it takes.
  template <class Body>
  void measure(Activity activity, Body&& body) {
    const Stopwatch watch;
    body();
    (*this)[activity] += watch.seconds();
  }
  friend bool operator==(const ActivitySeconds&, const ActivitySeconds&) = default;
};

}  // namespace tessera::train
