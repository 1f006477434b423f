#include "tessera/train/activity.hpp"

#include <numeric>

namespace tessera::train {

const char* to_string(Activity activity) {
  switch (activity) {
    case Activity::Batch:
      return "batch";
    case Activity::Forward:
      return "forward";
    case Activity::Loss:
      return "loss";
    case Activity::GradW:
      return "grad_w";
    case Activity::GradA:
      return "grad_a";
    case Activity::Optimiser:
      return "optimiser";
    case Activity::Rewire:
      return "rewire";
    case Activity::Evaluation:
      return "evaluation";
  }
  return "";
}

double ActivitySeconds::sum() const { return std::accumulate(of.begin(), of.end(), 0.0); }

}  // namespace tessera::train
