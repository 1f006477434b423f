#pragma once

#include <vector>

#include "tessera/runtime/internal/tensor_home.hpp"

namespace tessera::runtime::internal {

// Brings a tensor from one home to another, in which all padding becomes zeros.
//   steps    compute, only if the second home has padding: tiles that hold some clear their share;
//            exchange: the runs of elements that both homes have in common
class HandOver {
 public:
  HandOver(BoundProgram& program, device::Engine& engine, DataType type)
      : program_(program), engine_(engine), type_(type) {}

  // Declares the steps. The homes must have their buffers and outlive this object.
  void declare(const TensorHome& from, const TensorHome& to);

  // Prepares the exchange, when both homes have their slots and memory is allocated.
  void prepare();

 private:
  void clear();

  BoundProgram& program_;
  device::Engine& engine_;
  DataType type_;
  const TensorHome *from_ = nullptr, *to_ = nullptr;
  std::vector<TileId> padded_;
  std::vector<device::SlotId> padded_slots_;  // by tile
  device::Exchange exchange_;
  int clear_node_ = -1, exchange_node_ = -1;
};

}  // namespace tessera::runtime::internal
