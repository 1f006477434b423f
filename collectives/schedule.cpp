#include "tessera/collectives/schedule.hpp"

namespace tessera::collectives {

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::AllGather:
      return "all-gather";
    case Operation::ReduceScatter:
      return "reduce-scatter";
    case Operation::AllReduce:
      return "all-reduce";
  }
  return "";
}

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::OneWayRing:
      return "one-way ring";
    case Algorithm::TwoWayRing:
      return "two-way ring";
    case Algorithm::MeetInTheMiddle:
      return "meet in the middle";
    case Algorithm::MeetByHalves:
      return "meet by halves";
    case Algorithm::Direct:
      return "direct";
    case Algorithm::Halving:
      return "halving";
  }
  return "";
}

}  // namespace tessera::collectives
