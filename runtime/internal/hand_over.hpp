#pragma once

#include <utility>
#include <vector>

#include "tessera/runtime/internal/lines_of_tiles.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"

namespace tessera::runtime::internal {

// The padding of new homes that becomes zeros.
//   Rows  beyond the rows of the tensor, where blocks at the edge read it
//   All   of columns too, where results are added up over the columns
enum class Cleared { Rows, All };

// A tensor that the first exchange of a pass brings to another home beside what the pass reads.
struct BroughtBeside {
  const TensorHome *from = nullptr, *to = nullptr;  // null: none
};

// Tensors that one exchange brings to other homes. A run of elements that several tiles need is
// sent once. In a network, padding becomes zeros.
//   steps    compute, only if one of the new homes has padding: tiles that hold some clear it.
//            The exchange is a step of the caller, which may bring other data too.
class Fetches {
 public:
  Fetches(TileProgram& program, DataType type) : program_(program), type_(type) {}

  // Adds a tensor. The homes must have their buffers and slots and outlive this object.
  void add(const TensorHome& from, const TensorHome& to, Cleared cleared) {
    all_.push_back({&from, &to, cleared});
  }

  void add(const BroughtBeside& beside) {
    if (beside.from != nullptr) add(*beside.from, *beside.to, Cleared::All);
  }

  // Adds an operand that the host has loaded to its home, with its padding. Its shares are sent
  // whole, so that in Share mode tiles see the slices where the host has them.
  template <class SendersOf>
  void add(const SharedSlices& slices, const SendersOf& senders_of) {
    gather_slices(gathers_, slices, senders_of);
    whole_.add({{slices.home.buffer}, {slices.slices.buffer}});
  }

  // Adds the step that clears padding, if there is any.
  void declare_clear();

  // Adds the buffers that the exchange reads and writes.
  void add_uses(Uses& uses) const;

  // Return the gathers, which are not kept, and the moves of the exchange.
  std::vector<device::Gather> take_gathers() { return std::move(gathers_); }
  std::vector<device::Move> moves() const;

 private:
  struct Fetch {
    const TensorHome *from = nullptr, *to = nullptr;
    Cleared cleared = Cleared::All;
  };
  // The padding of a slot that a tile clears: the bytes from `tail` on, and `row_bytes` in `rows`
  // rows, of which the first one begins at `first`.
  struct Padding {
    device::SlotId slot;
    std::int64_t tail = 0, tail_bytes = 0;
    std::int64_t first = 0, rows = 0, row_bytes = 0, stride = 0;
  };
  Padding padding_of(const Fetch& fetch, const HomeShare& share) const;
  Cycles clear(const device::Tile& tile) const;

  TileProgram& program_;
  DataType type_;
  std::vector<Fetch> all_;
  std::vector<device::Gather> gathers_;
  Uses whole_;  // of the gathers
  std::vector<TileId> padded_;
  std::vector<std::vector<Padding>> padding_;  // by tile
};

// Adds steps that bring one tensor from one home to another. The homes must have their buffers and
// slots and outlive `fetches`, which is empty at first and must outlive the program.
void hand_over(TileProgram& program, const TensorHome& from, const TensorHome& to,
               Fetches& fetches);

}  // namespace tessera::runtime::internal
