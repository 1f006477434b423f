#pragma once

#include <memory>
#include <utility>

#include "tessera/base/executor.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The program of a pass alone, and the machine that runs it.
class OwnProgram {
 public:
  const Program& program() const { return program_->program(); }

  // Returns the memory that the program needs, by phase and buffer, and the most of any tile.
  device::MemoryUse memory() const { return program_->memory(); }
  Bytes high_water() const { return program_->engine().high_water(); }

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const { return program_->damage(); }

 protected:
  explicit OwnProgram(std::unique_ptr<TileProgram> program) : program_(std::move(program)) {}

  std::unique_ptr<TileProgram> program_;
};

// A pass with a program and a machine of its own. It is built once for its inputs, and runs any
// data of their sizes, one run at a time. A pass has
//   static std::string name_of(inputs)        of its program
//   Pass(inputs, program)                     or static std::unique_ptr<Pass> make(inputs, program)
//   void declare_alone(Executor&)             declares all steps, which it checks by their table
//   void start(data)                          takes the data of a run
template <class Pass>
class OwnPass : public OwnProgram {
 public:
  // Throws Error{LimitExceeded} if the memory of a tile cannot hold the program. The executor must
  // outlive the pass.
  template <class... Inputs>
  OwnPass(const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
          const Inputs&... inputs)
      : OwnPass(Declared(), machine, mode, executor, inputs...) {
    program_->seal();
  }

  // Returns memory() of such a pass without the check that a tile can hold it.
  template <class... Inputs>
  static device::MemoryUse memory_of(const device::Machine& machine, const Inputs&... inputs) {
    const auto executor = make_executor(ExecutorKind::Threads, 1);
    OwnPass own(Declared(), machine, device::ExchangeMode::Share, *executor, inputs...);
    own.program_->close();
    return own.memory();
  }

  // Runs the program. Returns false if options.stop ended the run. Overwrites `ledger` with the
  // steps that ran.
  template <class... Data>
  bool run(const PassOptions& options, device::Ledger& ledger, Data&&... data) {
    pass_->start(std::forward<Data>(data)...);
    return program_->run(options, ledger);
  }

  Pass* operator->() { return pass_.get(); }
  const Pass* operator->() const { return pass_.get(); }

 private:
  struct Declared {};  // the program is declared, but its memory is not checked

  template <class... Inputs>
  OwnPass(Declared, const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
          const Inputs&... inputs)
      : OwnProgram(
            std::make_unique<TileProgram>(Pass::name_of(inputs...), machine, mode, executor)) {
    if constexpr (requires { Pass::make(inputs..., *program_); })
      pass_ = Pass::make(inputs..., *program_);
    else
      pass_ = std::make_unique<Pass>(inputs..., *program_);
    pass_->declare_alone(executor);
  }

  std::unique_ptr<Pass> pass_;
};

}  // namespace tessera::runtime::internal
