#pragma once

#include <string>

namespace tessera::report {

// The notes that a plan file may carry beside the plan, for people and scripts. Readers of plans
// skip them.
struct PlanNotes {
  std::string relaxation;    // description of the relaxed request; empty: not relaxed
  std::string explanation;   // JSON text; empty: none
  std::string block_choice;  // the block that was chosen and its competitors; empty: none
  std::string verdict;       // JSON text, whether the plan pays; empty: not compared
};

// Returns the JSON of a plan with each note that is not empty as a member at the end.
std::string with_notes(const std::string& plan_json, const PlanNotes& notes);

// Returns the text of a plan file without these members. A text without them, or one that is not a
// JSON object, is not changed; the reader of plans reports its errors.
std::string without_notes(std::string text);

}  // namespace tessera::report
