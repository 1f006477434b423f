#include "tessera/report/plan_notes.hpp"

#include <nlohmann/json.hpp>

namespace tessera::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRelaxation = "relaxation";
constexpr const char* kExplanation = "explanation";
constexpr const char* kBlockChoice = "block_choice";
constexpr const char* kVerdict = "verdict";

}  // namespace

std::string with_notes(const std::string& plan_json, const PlanNotes& notes) {
  if (notes.relaxation.empty() && notes.explanation.empty() && notes.block_choice.empty() &&
      notes.verdict.empty())
    return plan_json;
  Json document = Json::parse(plan_json);
  if (!notes.relaxation.empty()) document[kRelaxation] = notes.relaxation;
  if (!notes.explanation.empty()) document[kExplanation] = Json::parse(notes.explanation);
  if (!notes.block_choice.empty()) document[kBlockChoice] = notes.block_choice;
  if (!notes.verdict.empty()) document[kVerdict] = Json::parse(notes.verdict);
  return document.dump(2) + "\n";
}

std::string without_notes(std::string text) {
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return text;
  std::size_t noted = 0;
  for (const char* note : {kRelaxation, kExplanation, kBlockChoice, kVerdict})
    noted += document.erase(note);
  return noted != 0 ? document.dump() : text;
}

}  // namespace tessera::report
