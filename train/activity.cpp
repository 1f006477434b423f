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

Activity activity_of(planner::NetworkWork work) {
  using planner::NetworkWork;
  switch (work) {
    case NetworkWork::Fwd:
    case NetworkWork::Activate:
    case NetworkWork::Recompute:
    case NetworkWork::Parameters:
    case NetworkWork::HandOver:
      return Activity::Forward;
    case NetworkWork::Loss:
      return Activity::Loss;
    case NetworkWork::Derivative:
    case NetworkWork::GradA:
      return Activity::GradA;
    case NetworkWork::GradW:
      return Activity::GradW;
    case NetworkWork::Update:
    case NetworkWork::UpdateBiases:
    case NetworkWork::Rehome:
      return Activity::Optimiser;
  }
  return Activity::Forward;
}

double ActivitySeconds::sum() const { return std::accumulate(of.begin(), of.end(), 0.0); }

}  // namespace tessera::train
