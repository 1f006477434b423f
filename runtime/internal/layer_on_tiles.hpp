#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/layer/backend.hpp"
#include "tessera/runtime/internal/own_pass.hpp"
#include "tessera/runtime/internal/padded.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/verify/product_sums.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::runtime::internal {

// A layer on a modelled machine, whose calls were checked: it brings operands to the sizes that
// programs read, runs a pass and checks its results. The kinds of layers have weights and programs.
class LayerOnTiles : public layer::BackendOf<device::Ledger> {
 public:
  LayerOnTiles(const Problem& of, const device::Machine& on, Executor& threads)
      : problem(of), machine(on), executor(threads) {}

  virtual bool empty() const = 0;  // true: there are no weights yet
  bool has(Pass pass) const { return programs[std::size_t(pass)] != nullptr; }

  // Returns the weights of a group as they were given and changed since.
  virtual const sparse::CheckedCsr<float>& given(std::int64_t group) const = 0;

  // Throw Error{InvalidArgument} for a pass that the layer was planned without.
  const Program& program(Pass pass) const { return planned(pass).program(); }
  device::MemoryUse memory(Pass pass) const { return planned(pass).memory(); }

  // Returns the most memory that any tile needs in any pass; by default the layer's passes share
  // nothing.
  virtual Bytes high_water() const;

  // The number of values of all groups.
  std::int64_t values() const;

  layer::LayerFacts facts() const override;
  const sparse::Csr<float>& weights_of(std::int64_t group) const override { return *given(group); }

  const Problem problem;
  const device::Machine machine;
  Executor& executor;

 protected:
  // Returns the rows and columns of the operands of a group that the programs of a pass read and
  // write: x rows of Q and dQ, y rows of S and dS, and z columns.
  virtual Dims padded(Pass pass) const = 0;

  // Run Fwd or GradA, or GradW, whose gradients are in the order of the given patterns. Operands
  // have the padded sizes. Return false if options.stop ended the pass.
  virtual bool product(Pass pass, device::ByteRows in, device::ByteRows out,
                       const PassOptions& options, device::Ledger& ledger) = 0;
  virtual bool gradient(device::ByteRows q_grad, device::ByteRows s, std::span<float> gradients,
                        const PassOptions& options, device::Ledger& ledger) = 0;

  // The program of each pass; null: the layer was planned without the pass.
  std::array<const OwnProgram*, 3> programs = {};

  // Returns the program of a pass. Throws Error{InvalidArgument} if there is none.
  const OwnProgram& planned(Pass pass) const;

  // Returns the memory that changed during the last run of a pass.
  virtual verify::MemoryDamage damage(Pass pass) const;

  // Must be called after every change of a value or a pattern.
  void forget_sums() { sums_.forget(); }

 private:
  bool takes(const layer::TargetOptions& options) const override {
    return dynamic_cast<const TileOptions*>(&options) != nullptr;
  }
  bool compute(Pass pass, const layer::Operands& operands, const PassOptions& options,
               device::Ledger& ledger) override;
  double seconds(const device::Ledger& ledger) const override {
    return double(ledger.total().value) / machine.clock_hz;
  }
  template <class T>
  bool compute_product(Pass pass, const layer::Operands& operands, const PassOptions& options,
                       device::Ledger& ledger);
  template <class T>
  bool compute_gradient(const layer::Operands& operands, const PassOptions& options,
                        device::Ledger& ledger);
  // Returns an operand whose rows in each group are this side of the problem.
  template <class T>
  Padded<T> operand(Pass pass, MatrixView<T> view, std::int64_t Dims::* side);

  // Check the results of all groups and collect the checksums in `all`. GradA multiplies by the
  // transpose. The memory of a pass was watched, so GradW compares sums of a sample of rows. Throw
  // Error{CheckFailed} with pass, group and place if a result is wrong.
  template <class T>
  void check_product(Pass pass, MatrixView<const T> in, MatrixView<const T> out,
                     verify::Checksums& all);
  template <class T>
  void check_gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                      std::span<const float> gradients, verify::Checksums& all) const;

  verify::KeptSums sums_;                         // of the given weights
  std::array<std::vector<std::byte>, 2> copies_;  // of operands, by side
};

// Replaces the values of a matrix. Throws Error{InvalidArgument} for another number of values.
void put_values(std::span<const float> values, sparse::CheckedCsr<float>& matrix);

}  // namespace tessera::runtime::internal
