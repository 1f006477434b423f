#include "tessera/report/plan_notes.hpp"

#include "tessera/json/value.hpp"

namespace tessera::report {
namespace {

using Json = json::Value;

constexpr const char* kRelaxation = "relaxation";
constexpr const char* kExplanation = "explanation";
constexpr const char* kBlockChoice = "block_choice";
constexpr const char* kVerdict = "verdict";

}  // namespace

std::string with_notes(const std::string& plan_json, const PlanNotes& notes) {
  if (notes.relaxation.empty() && notes.explanation.empty() && notes.block_choice.empty() &&
      notes.verdict.empty())
    return plan_json;
  Json document = json::parse_own(plan_json);
  if (!notes.relaxation.empty()) document[kRelaxation] = notes.relaxation;
  if (!notes.explanation.empty()) document[kExplanation] = json::parse_own(notes.explanation);
  if (!notes.block_choice.empty()) document[kBlockChoice] = notes.block_choice;
  if (!notes.verdict.empty()) document[kVerdict] = json::parse_own(notes.verdict);
  return document.dump(2) + "\n";
}

std::string without_notes(std::string text) {
  std::optional<Json> document = json::parse_if_json(text);
  if (!document || !document->is_object()) return text;
  const Json given = *document;
  for (const char* note : {kRelaxation, kExplanation, kBlockChoice, kVerdict})
    document->erase(note);
  return *document == given ? text : document->dump();
}

}  // namespace tessera::report
