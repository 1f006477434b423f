#pragma once

#include <string>
#include <vector>

#include "tessera/runtime/run_options.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::inline v0::tools {

// "tile=5,step=3,bit=17", in any order; "pass=fwd", "bwd" or "wu" may be among them (else fwd).
// Error{InvalidArgument} says what is wrong with it.
FaultRequest parse_fault(const std::string& text);

// What a report says of checksums that agree.
std::string self_check_note(planner::Pass pass, const runtime::Checksums& checksums);

// What --self-check and --inject ask of one pass, and what came of it. One run at a time.
class Trust {
 public:
  Trust(const Arguments& arguments, planner::Pass pass) : arguments_(arguments), pass_(pass) {}

  // For a run of the pass; points into this.
  runtime::RunOptions options();
  bool has_fault() const { return arguments_.fault && arguments_.fault->pass == pass_; }
  // In words, after a run; `changed`: results are others than without the fault.
  std::vector<std::string> notes(bool changed) const;

 private:
  const Arguments& arguments_;
  planner::Pass pass_;
  runtime::Checksums checksums_;
  std::optional<device::Struck> struck_;
};

}  // namespace tessera::inline v0::tools
