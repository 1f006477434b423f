#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::tools {

// Reads a text such as "tile=5,step=3,bit=17". The parts may have any order, and "pass=fwd",
// "pass=bwd" or "pass=wu" may be among them; the default is fwd. "device=3" may be among them, too.
// Throws Error{InvalidArgument}, which names the mistake.
FaultRequest parse_fault(const std::string& text);

// Throws Error{InvalidArgument} if the pass of --inject is none of the layer's.
void check_fault_pass(const Arguments& arguments);

// Returns the note of a report about checksums that agree.
std::string self_check_note(Pass pass, const verify::Checksums& checksums);

// Returns the note of a report about a fault: where it struck, if it did, and whether results
// differ from those of a run without it.
std::string fault_note(const std::optional<device::Struck>& struck, bool changed);

// The requests of --self-check and --inject for one pass, and their outcome. It serves one run at a
// time.
class Trust {
 public:
  Trust(const Arguments& arguments, Pass pass) : arguments_(arguments), pass_(pass) {}

  // Returns the options for a run of the pass. They point into this object.
  runtime::TilePass options();

  // Returns the checksums of the run; no value if --self-check was not requested.
  std::optional<verify::Checksums> checksums() const;

  bool has_fault() const { return arguments_.fault && arguments_.fault->pass == pass_; }

  // Returns the outcome of a run as sentences. `changed` says whether the results differ from those
  // without the fault.
  std::vector<std::string> notes(bool changed) const;

 private:
  const Arguments& arguments_;
  Pass pass_;
  verify::Checksums checksums_;
  std::optional<device::Struck> struck_;
};

}  // namespace tessera::tools
