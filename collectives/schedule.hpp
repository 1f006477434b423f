#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::collectives {

// The effect of a collective on the data of its members.
enum class Operation {
  AllGather,      // every member has one part of the data and gets all of them
  ReduceScatter,  // every member has all of the data, and gets the sum over members of one part
  AllReduce       // every member has all of the data, and gets the sum over members
};

// The method by which the n members of a collective on one level exchange their parts.
enum class Algorithm {
  OneWayRing,       // n - 1 steps, each sends one part to the next member
  TwoWayRing,       // n - 1 steps, each sends half a part to either side
  MeetInTheMiddle,  // n / 2 steps, each sends a part to either side; the last one if n is even,
                    // to one side
  MeetByHalves,     // the same for even n, but the last step sends half a part to either side
  Direct,           // one step, each member sends to every other one
  Halving           // log2(n) steps between members whose distance halves in a gather and doubles
                    // in a sum, so that the largest messages go the shortest way; n is a power of
                    // two
};

// Return names such as "all-gather" and "two-way ring"; the texts are valid as long as the program.
std::string_view to_string(Operation operation);
std::string_view to_string(Algorithm algorithm);

// One message of a step: the pieces first .. first + pieces - 1 of the data of member `from`. The
// member `to` adds them to its own if `add` is true, and otherwise replaces its own.
struct Transfer {
  std::int32_t from = 0, to = 0;
  std::int32_t first = 0, pieces = 0;
  bool add = false;

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// A collective as a plain value. The data consist of members * pieces_per_member equal pieces;
// member m has, or gets, the pieces m * pieces_per_member and following as its part. All transfers
// of a step read before any of them writes.
struct Schedule {
  Operation operation = Operation::AllGather;
  std::int32_t members = 1;
  std::int32_t pieces_per_member = 1;  // 1 or 2
  std::vector<std::vector<Transfer>> steps;

  friend bool operator==(const Schedule&, const Schedule&) = default;
  std::int32_t pieces() const { return members * pieces_per_member; }
};

}  // namespace tessera::collectives
