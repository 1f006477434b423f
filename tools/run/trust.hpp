#pragma once

#include <optional>
#include <string>

#include "tessera/base/pass.hpp"
#include "tessera/device/engine.hpp"
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

// Returns the note of a report about the fault of the arguments: where it struck, if it did, and
// whether results differ from those of a run without it.
std::string fault_note(const Arguments& arguments, const std::optional<device::Struck>& struck,
                       bool changed);

}  // namespace tessera::tools
