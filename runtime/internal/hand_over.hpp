#pragma once

#include <vector>

#include "tessera/runtime/internal/tensor_home.hpp"

namespace tessera::runtime::internal {

// The padding of new homes that becomes zeros.
//   Rows  beyond the rows of the tensor, where blocks at the edge read it
//   All   of columns too, where results are added up over the columns
enum class Cleared { Rows, All };

// Tensors that one exchange brings to other homes, in which padding becomes zeros. A run of
// elements that several tiles need is sent once.
//   steps    compute, only if one of the new homes has padding: tiles that hold some clear it.
//            The exchange is a step of the caller, which may bring other data too.
class Fetches {
 public:
  Fetches(BoundProgram& program, device::Engine& engine, DataType type)
      : program_(program), engine_(engine), type_(type) {}

  // Adds a tensor. The homes must have their buffers and outlive this object.
  void add(const TensorHome& from, const TensorHome& to, Cleared cleared) {
    all_.push_back({&from, &to, cleared});
  }

  // Declares the step that clears padding, if there is any.
  void declare_clear();

  // Adds the buffers that the exchange reads and writes.
  void add_uses(Uses& uses) const;

  // Prepares the clearing and returns the moves of the exchange, when all homes have their slots
  // and memory is allocated.
  std::vector<device::Move> prepare();

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
  void clear();

  BoundProgram& program_;
  device::Engine& engine_;
  DataType type_;
  std::vector<Fetch> all_;
  std::vector<TileId> padded_;
  std::vector<std::vector<Padding>> padding_;  // by tile
  int clear_node_ = -1;
};

// Brings one tensor from one home to another in an exchange of its own.
class HandOver {
 public:
  HandOver(BoundProgram& program, device::Engine& engine, DataType type)
      : program_(program), engine_(engine), fetches_(program, engine, type) {}

  // Declares the steps. The homes must have their buffers and outlive this object.
  void declare(const TensorHome& from, const TensorHome& to);

  // Prepares the exchange, when both homes have their slots and memory is allocated.
  void prepare();

 private:
  BoundProgram& program_;
  device::Engine& engine_;
  Fetches fetches_;
  device::Exchange exchange_;
  int exchange_node_ = -1;
};

}  // namespace tessera::runtime::internal
