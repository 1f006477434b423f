#pragma once

#include <string>

namespace tessera::tools {

// What a plan file may hold beside the plan, for people and scripts. Readers of plans skip it.
struct PlanNotes {
  std::string relaxation;   // how the request was relaxed, in words; empty: it was not
  std::string explanation;  // JSON text; empty: none
};

// The JSON of a plan with the notes that there are, each a member of its own at the end.
std::string with_notes(const std::string& plan_json, const PlanNotes& notes);

// A plan file's text without these members. A text that holds none, or that is no JSON object,
// stays as it is: its faults are the plan reader's to name.
std::string without_notes(std::string text);

}  // namespace tessera::tools
