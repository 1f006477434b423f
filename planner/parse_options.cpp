#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/json/value.hpp"
#include "tessera/planner/internal/plan_fields.hpp"
#include "tessera/planner/options.hpp"

namespace tessera::planner {
namespace {

using Json = json::Value;

// A value with its place in the text, as messages need it.
struct Entry {
  std::string_view where;
  std::string key;  // path of keys
  const Json& value;
};

[[noreturn]] void throw_wrong(const Entry& entry, std::string_view legal) {
  throw_invalid(fmt::format("{}: {} is {}; it must be {}", entry.where, entry.key,
                            json::shown(entry.value), legal));
}

bool read_bool(const Entry& entry) {
  if (const bool* const truth = std::get_if<bool>(&entry.value.data)) return *truth;
  if (entry.value == "true") return true;
  if (entry.value == "false") return false;
  throw_wrong(entry, "true or false");
}

template <class Number>
std::optional<Number> number_in_text(const Json& value) {
  const auto* const text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return {};
  Number number{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size()) return {};
  return number;
}

double read_number(const Entry& entry) {
  if (const auto* const number = std::get_if<double>(&entry.value.data)) return *number;
  if (const auto* const whole = std::get_if<std::int64_t>(&entry.value.data)) return double(*whole);
  if (const auto number = number_in_text<double>(entry.value)) return *number;
  throw_wrong(entry, "a number");
}

std::int64_t read_count(const Entry& entry) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t count = 0;
  if (const auto* const whole = std::get_if<std::int64_t>(&entry.value.data))
    count = *whole;
  else if (const auto number = number_in_text<std::int64_t>(entry.value))
    count = *number;
  if (count < 1 || count > kMost) throw_wrong(entry, "a whole number in 1..2^62");
  return count;
}

// Parses option text; what is wrong with it is wrong with an argument.
Json parse_json(std::string_view text, std::string_view where) {
  try {
    return json::parse(text, where);
  } catch (const Error& error) {
    throw_invalid(error.what());
  }
}

// Reads the members of an object by the names of describe() (plan_fields.hpp). Members that the
// object lacks keep their values.
class OptionReader {
 public:
  explicit OptionReader(const Entry& object) : object_(object) {
    if (!std::holds_alternative<json::Object>(object.value.data)) throw_wrong(object, "an object");
  }

  // Returns a member if the object has it. The key is a legal one from now on.
  std::optional<Entry> find(std::string_view key) {
    keys_.push_back(key);
    const Json* const value = json::find(object_.value, key);
    if (value == nullptr) return {};
    return Entry{object_.where, path_of(key), *value};
  }

  template <class T, class... Legal>
  void operator()(std::string_view key, T& value, const Legal&... legal) {
    if (const auto entry = find(key)) read(*entry, value, legal...);
  }
  template <class Describe>
  void group(std::string_view key, Describe&& describe_members) {
    const auto entry = find(key);
    if (!entry) return;
    OptionReader members(*entry);
    describe_members(members);
    members.finish();
  }

  // Refuses members with keys that are not legal.
  void finish() const {
    for (const auto& [key, value] : std::get<json::Object>(object_.value.data))
      if (std::ranges::find(keys_, key) == keys_.end())
        throw_invalid(fmt::format("{}: {} is not known; the keys are {}", object_.where,
                                  path_of(key), fmt::join(keys_, ", ")));
  }

 private:
  std::string path_of(std::string_view key) const {
    return object_.key.empty() ? std::string(key) : fmt::format("{}.{}", object_.key, key);
  }
  static void read(const Entry& entry, bool& value) { value = read_bool(entry); }
  static void read(const Entry& entry, double& value) { value = read_number(entry); }
  static void read(const Entry& entry, std::int64_t& value, json::WholeRange) {
    value = read_count(entry);
  }
  template <class T, class... Legal>
  static void read(const Entry& entry, std::optional<T>& value, const Legal&... legal) {
    read(entry, value.emplace(), legal...);
  }
  static void read(const Entry& entry, Placement& value, const json::Names<Placement>& names) {
    for (const auto& [placement, name] : names)
      if (entry.value == name) return void(value = placement);
    throw_wrong(entry, "\"even-spread\", \"as-left\" or \"at-home\"");
  }
  // Reads constraints as an object or, as PopSparse has them, as JSON inside a string.
  static void read(const Entry& entry, PlanConstraints& value) {
    const auto* const text = std::get_if<std::string>(&entry.value.data);
    const Json inner = text == nullptr ? entry.value : parse_json(*text, entry.where);
    OptionReader fields({entry.where, entry.key, inner});
    value = {};
    internal::describe(fields, value);
    fields.finish();
  }

  Entry object_;
  std::vector<std::string_view> keys_;
};

// PopSparse's options of which this library has one side only.
struct FixedKey {
  std::string_view key;
  bool value;  // the only one that is accepted
  std::string_view reason;
};

constexpr FixedKey kFixedKeys[] = {
    {"partitioner.optimiseForSpeed", true,
     "whether a pattern fits does not depend on where its spilled pieces go, so that they always "
     "take the fewest steps"},
    {"partitioner.useActualWorkerSplitCosts", false,
     "planner and partitioner size every record for all workers, so that what fits can always be "
     "encoded; lower metaInfoBucketOversizeProportion or bucketConfidence for smaller buckets"},
};

void check_fixed(const FixedKey& fixed, const Entry& entry) {
  if (read_bool(entry) == fixed.value) return;
  throw_wrong(entry, fmt::format("{} or be left out: {}", fixed.value, fixed.reason));
}

// PopSparse's options that ask for something which this library has in another place, or not at
// all.
struct RefusedKey {
  std::string_view key, reason;
};

constexpr RefusedKey kRefusedKeys[] = {
    {"doGradAPass", "part of the layer, not an option; give it with the layer"},
    {"doGradWPass", "part of the layer, not an option; give it with the layer"},
    {"partialsType", "part of the layer, not an option; give it with the layer"},
    {"numBands", "for a static pattern; give StaticOptions::bands, or let the planner choose"},
    {"nSplit", "for a static pattern; give StaticOptions::z_parts, or let the planner choose"},
    {"verboseLogging", "not known here: libraries do not print; ask for --explain or a report"},
    {"enablePreprocessing",
     "not known here: a pattern is always encoded before it is on the machine"},
    {"memoryCycleRatio",
     "not known here: a product at a mask takes the fewest cycles that fit "
     "availableMemoryProportion"},
    {"numberOfPass",
     "not known here: a product at a mask takes one run; a batch that does not fit is cut "
     "(runtime/batches.hpp)"},
    {"partitionMethod",
     "not known here: blocks go to the tile of their cell, and planConstraints.partition cuts the "
     "cells"},
};

}  // namespace

Options parse_options(std::string_view json, std::string_view where, const Options& base) {
  Options options = base;
  const Json document = parse_json(json, where);
  OptionReader fields({where, "", document});
  for (const RefusedKey& refused : kRefusedKeys)
    if (json::find(document, refused.key) != nullptr)
      throw_invalid(fmt::format("{}: {} is {}", where, refused.key, refused.reason));
  internal::describe(fields, options);
  for (const FixedKey& fixed : kFixedKeys)
    if (const auto entry = fields.find(fixed.key)) check_fixed(fixed, *entry);
  fields.finish();
  // A caller who sets the slack alone gets exactly that slack.
  if (json::find(document, "metaInfoBucketOversizeProportion") != nullptr &&
      json::find(document, "bucketConfidence") == nullptr)
    options.bucket_confidence = 0;
  try {
    check_options(options);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", where, error.what()));
  }
  return options;
}

PlanConstraints parse_plan_constraints(std::string_view json, std::string_view where) {
  const Json document = parse_json(json, where);
  OptionReader fields({where, "", document});
  PlanConstraints pins;
  internal::describe(fields, pins);
  fields.finish();
  return pins;
}

}  // namespace tessera::planner
