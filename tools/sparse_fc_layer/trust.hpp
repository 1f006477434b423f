#pragma once

#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/runtime/run_options.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::tools {

// "tile=5,step=3,bit=17", in any order; "pass=fwd", "bwd" or "wu" may be among them (else fwd).
// Error{InvalidArgument} says what is wrong with it.
FaultRequest parse_fault(const std::string& text);

// What a report says of checksums that agree.
std::string self_check_note(Pass pass, const verify::Checksums& checksums);

// What --self-check and --inject ask of one pass, and what came of it. One run at a time.
class Trust {
 public:
  Trust(const Arguments& arguments, Pass pass) : arguments_(arguments), pass_(pass) {}

  // For a run of the pass; points into this.
  runtime::RunOptions options();
  bool has_fault() const { return arguments_.fault && arguments_.fault->pass == pass_; }
  // In words, after a run; `changed`: results are others than without the fault.
  std::vector<std::string> notes(bool changed) const;

 private:
  const Arguments& arguments_;
  Pass pass_;
  verify::Checksums checksums_;
  std::optional<device::Struck> struck_;
};

}  // namespace tessera::tools
