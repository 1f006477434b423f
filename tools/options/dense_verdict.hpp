#pragma once

#include <string>

#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/report/dense_verdict.hpp"

namespace tessera::tools {

// Returns a note if the plan is dense: that R has no buckets and, if the options left it open, how
// to keep R sparse. An empty text if R has the blocks of the layer.
std::string dense_note(const planner::Plan& plan, const planner::Options& options);

// Returns the line "verdict    ..." with the text of report::verdict_text.
std::string verdict_line(const report::DenseComparison& comparison);

}  // namespace tessera::tools
