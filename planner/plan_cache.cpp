#include "tessera/planner/plan_cache.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include "tessera/base/write_file.hpp"
#include "tessera/planner/internal/check_plan.hpp"
#include "tessera/planner/internal/plan_fields.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/request_json.hpp"
#include "tessera/planner/internal/store.hpp"

namespace tessera::planner {
namespace {

using internal::Json;

constexpr std::int64_t kFormatVersion = 2;  // of keys and answers as text

std::string key_of(const Problem& problem, const device::Machine& machine, const Options& options,
                   const PatternStats* stats) {
  Json key;
  key["format"] = kFormatVersion;
  key["planner"] = kPlannerVersion;
  key.update(internal::request_json(problem, machine, options));
  key["pattern"] = stats == nullptr ? Json() : internal::to_json_object(*stats);
  return key.dump();
}

// Returns the answer in a stored text, or nullopt if the text is not an answer to this request.
std::optional<PlanResult> answer_of(const std::string& text, const internal::Request& request) {
  try {
    auto result = internal::read_object<PlanResult>(json::parse(text, ""), {"", ""});
    if (result.has_plan) internal::check_plan(result.plan, request, "");
    return result;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::BadInput && error.code() != ErrorCode::LimitExceeded) throw;
    return std::nullopt;
  }
}

// Returns roughly the bytes that a plan has on the heap: its terms, the plan of another layout, and
// the passes of a dense plan, each with the same terms again.
std::size_t heap_bytes(const Plan& plan) {
  constexpr std::size_t kTerm = sizeof(CostTerm) + 32;
  std::size_t bytes = 0;
  for (const PassCost& pass : plan.cost.passes) bytes += pass.terms.size() * kTerm;
  if (plan.dense) bytes = 3 * bytes + plan.dense->passes.size() * sizeof(DensePassPlan);
  for (const Plan& other : plan.backward) bytes += sizeof(Plan) + heap_bytes(other);
  return bytes;
}

// Returns roughly the bytes of an entry: the key, the answer, and a fixed amount for the map and
// the list.
std::int64_t size_of(const std::string& key, const PlanResult& answer) {
  constexpr std::size_t kFixed = 512;
  return static_cast<std::int64_t>(key.size() + sizeof(PlanResult) + answer.reason.size() +
                                   heap_bytes(answer.plan) + kFixed);
}

}  // namespace

PlanCache::PlanCache(std::string folder, Bytes memory)
    : folder_(std::move(folder)), memory_(memory.value) {
  if (!folder_.empty()) internal::make_store(folder_);
}

PlanResult PlanCache::plan(const Problem& problem, const device::Machine& machine,
                           const Options& options, const PatternStats* stats) {
  internal::check_request(problem, machine, options, stats);
  const std::string key = key_of(problem, machine, options, stats);
  if (const Answer answer = find(key)) {
    ++from_memory_;
    return *answer;
  }
  if (!folder_.empty()) {
    const std::optional<std::string> text = internal::load(folder_, key);
    std::optional<PlanResult> stored =
        text ? answer_of(*text, {problem, machine, options}) : std::nullopt;
    if (stored) {
      ++from_disk_;
      keep(key, std::make_shared<const PlanResult>(*stored));
      return *std::move(stored);
    }
  }
  const auto answer =
      std::make_shared<const PlanResult>(planner::plan(problem, machine, options, stats));
  ++planned_;
  keep(key, answer);
  if (!folder_.empty()) store(key, *answer);
  return *answer;
}

PlanCacheCounts PlanCache::counts() const { return {from_memory_, from_disk_, planned_}; }

std::string PlanCache::store_failure() const {
  Memory& memory = memory_of_process_.get();
  const std::shared_lock lock(memory.lock);
  return memory.store_failure;
}

// A plan that was found must not be lost because the disk is full.
void PlanCache::store(const std::string& key, const PlanResult& answer) {
  try {
    internal::store(folder_, key, internal::to_json_object(answer).dump());
  } catch (const CannotWrite& error) {
    Memory& memory = memory_of_process_.get();
    const std::unique_lock lock(memory.lock);
    if (memory.store_failure.empty()) memory.store_failure = error.what();
  }
}

PlanCache::Answer PlanCache::find(const std::string& key) const {
  Memory& memory = memory_of_process_.get();
  const std::shared_lock lock(memory.lock);
  const auto found = memory.answers.find(key);
  return found == memory.answers.end() ? nullptr : found->second;
}

void PlanCache::keep(const std::string& key, Answer answer) {
  const std::int64_t size = size_of(key, *answer);
  if (size > memory_) return;
  Memory& memory = memory_of_process_.get();
  const std::unique_lock lock(memory.lock);
  const auto [place, is_new] = memory.answers.emplace(key, std::move(answer));
  if (!is_new) return;
  memory.order.push_back(&place->first);
  memory.used += size;
  while (memory.used > memory_) {
    const auto oldest = memory.answers.find(*memory.order.front());
    memory.used -= size_of(oldest->first, *oldest->second);
    memory.order.pop_front();
    memory.answers.erase(oldest);
  }
}

}  // namespace tessera::planner
