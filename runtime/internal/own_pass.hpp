#pragma once

#include <memory>
#include <utility>

#include "tessera/base/executor.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// A pass with a program and a machine of its own. It is built once for its inputs, and runs any
// data of their sizes, one run at a time. A pass has
//   static std::string name_of(inputs)        of its program
//   Pass(inputs, program)                     or static std::unique_ptr<Pass> make(inputs, program)
//   void declare_alone(Executor&)             declares all steps, which it checks by their table
//   void start(data)                          takes the data of a run
template <class Pass>
class OwnPass {
 public:
  // Throws Error{LimitExceeded} if the memory of a tile cannot hold the program. The executor must
  // outlive the pass.
  template <class... Inputs>
  OwnPass(const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
          const Inputs&... inputs)
      : own_(std::make_unique<Own>(machine, mode, executor, inputs...)) {
    own_->program.seal();
  }

  // Returns memory() of such a pass without the check that a tile can hold it.
  template <class... Inputs>
  static device::MemoryUse memory_of(const device::Machine& machine, const Inputs&... inputs) {
    const auto executor = make_executor(ExecutorKind::Threads, 1);
    Own own(machine, device::ExchangeMode::Share, *executor, inputs...);
    own.program.close();
    return own.program.memory();
  }

  // Runs the program. Returns false if options.stop ended the run. Overwrites `ledger` with the
  // steps that ran.
  template <class... Data>
  bool run(const PassOptions& options, device::Ledger& ledger, Data&&... data) {
    own_->pass->start(std::forward<Data>(data)...);
    return own_->program.run(options, ledger);
  }

  Pass* operator->() { return own_->pass.get(); }
  const Pass* operator->() const { return own_->pass.get(); }
  const Program& program() const { return own_->program.program(); }

  // Returns the memory that the program needs, by phase and buffer, and the most of any tile.
  device::MemoryUse memory() const { return own_->program.memory(); }
  Bytes high_water() const { return own_->program.engine().high_water(); }

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const { return own_->program.damage(); }

 private:
  struct Own {
    template <class... Inputs>
    Own(const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
        const Inputs&... inputs)
        : program(Pass::name_of(inputs...), machine, mode, executor),
          pass(made(program, inputs...)) {
      pass->declare_alone(executor);
    }
    template <class... Inputs>
    static std::unique_ptr<Pass> made(TileProgram& program, const Inputs&... inputs) {
      if constexpr (requires { Pass::make(inputs..., program); })
        return Pass::make(inputs..., program);
      else
        return std::make_unique<Pass>(inputs..., program);
    }

    TileProgram program;
    std::unique_ptr<Pass> pass;
  };
  std::unique_ptr<Own> own_;
};

}  // namespace tessera::runtime::internal
