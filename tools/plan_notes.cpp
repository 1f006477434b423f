#include "tessera/tools/plan_notes.hpp"

#include <nlohmann/json.hpp>

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRelaxation = "relaxation";
constexpr const char* kExplanation = "explanation";
constexpr const char* kBlockChoice = "block_choice";

}  // namespace

std::string with_notes(const std::string& plan_json, const PlanNotes& notes) {
  if (notes.relaxation.empty() && notes.explanation.empty() && notes.block_choice.empty())
    return plan_json;
  Json document = Json::parse(plan_json);
  if (!notes.relaxation.empty()) document[kRelaxation] = notes.relaxation;
  if (!notes.explanation.empty()) document[kExplanation] = Json::parse(notes.explanation);
  if (!notes.block_choice.empty()) document[kBlockChoice] = notes.block_choice;
  return document.dump(2) + "\n";
}

std::string without_notes(std::string text) {
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return text;
  const std::size_t noted =
      document.erase(kRelaxation) + document.erase(kExplanation) + document.erase(kBlockChoice);
  return noted != 0 ? document.dump() : text;
}

}  // namespace tessera::tools
