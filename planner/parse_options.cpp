#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/json/value.hpp"
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

[[noreturn]] void throw_invalid(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, message);
}

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

// Calls read(key, entry) for every member. `read` returns false if it does not know the key.
template <class Read>
void read_object(const Entry& object, const std::vector<std::string_view>& legal, Read&& read) {
  const auto* const members = std::get_if<json::Object>(&object.value.data);
  if (members == nullptr) throw_wrong(object, "an object");
  for (const auto& [key, value] : *members) {
    const std::string path = object.key.empty() ? key : object.key + "." + key;
    if (!read(key, Entry{object.where, path, value}))
      throw_invalid(fmt::format("{}: {} is not known; the keys are {}", object.where, path,
                                fmt::join(legal, ", ")));
  }
}

void read_partition(const Entry& entry, PlanConstraints& pins) {
  read_object(entry, {"x", "y", "z"}, [&](std::string_view key, const Entry& value) {
    if (key == "x")
      pins.x = read_count(value);
    else if (key == "y")
      pins.y = read_count(value);
    else if (key == "z")
      pins.z = read_count(value);
    else
      return false;
    return true;
  });
}

void read_exchange(const Entry& entry, PlanConstraints& pins) {
  read_object(entry, {"gradWExchangeBuckets"}, [&](std::string_view key, const Entry& value) {
    if (key != "gradWExchangeBuckets") return false;
    pins.grad_w_exchange_buckets = read_bool(value);
    return true;
  });
}

PlanConstraints read_constraints(const Entry& entry) {
  PlanConstraints pins;
  read_object(entry, {"partition", "exchange", "useDense"},
              [&](std::string_view key, const Entry& value) {
                if (key == "partition")
                  read_partition(value, pins);
                else if (key == "exchange")
                  read_exchange(value, pins);
                else if (key == "useDense")
                  pins.use_dense = read_bool(value);
                else
                  return false;
                return true;
              });
  return pins;
}

// Parses option text; what is wrong with it is wrong with an argument.
Json parse_json(std::string_view text, std::string_view where) {
  try {
    return json::parse(text, where);
  } catch (const Error& error) {
    throw_invalid(error.what());
  }
}

// Reads constraints as an object or, as PopSparse has them, as JSON inside a string.
PlanConstraints read_constraints_or_text(const Entry& entry) {
  const auto* const text = std::get_if<std::string>(&entry.value.data);
  if (text == nullptr) return read_constraints(entry);
  const Json inner = parse_json(*text, entry.where);
  return read_constraints({entry.where, entry.key, inner});
}

struct OptionKey {
  std::string_view key;
  void (*read)(const Entry&, Options&);
};

template <auto Member>
void read_flag(const Entry& entry, Options& options) {
  options.*Member = read_bool(entry);
}

Placement read_placement(const Entry& entry) {
  for (const Placement p : {Placement::EvenSpread, Placement::AsLeft, Placement::AtHome})
    if (entry.value == to_string(p)) return p;
  throw_wrong(entry, "\"even-spread\", \"as-left\" or \"at-home\"");
}

const OptionKey kOptionKeys[] = {
    {"availableMemoryProportion",
     [](const Entry& e, Options& o) { o.available_memory_proportion = read_number(e); }},
    {"metaInfoBucketOversizeProportion",
     [](const Entry& e, Options& o) { o.meta_info_bucket_oversize_proportion = read_number(e); }},
    {"bucketConfidence", [](const Entry& e, Options& o) { o.bucket_confidence = read_number(e); }},
    {"patternCount", [](const Entry& e, Options& o) { o.pattern_count = read_count(e); }},
    {"sharedBuckets", [](const Entry& e, Options& o) { o.shared_buckets = read_bool(e); }},
    {"perPassPlans", read_flag<&Options::per_pass_plans>},
    {"enableStructuredRearrangements", read_flag<&Options::enable_structured_rearrangements>},
    {"operandPlacement",
     [](const Entry& e, Options& o) { o.operand_placement = read_placement(e); }},
    {"partitioner.forceBucketSpills", read_flag<&Options::partitioner_force_bucket_spills>},
    {"searchLimit", [](const Entry& e, Options& o) { o.search_limit = read_count(e); }},
    {"planConstraints",
     [](const Entry& e, Options& o) { o.constraints = read_constraints_or_text(e); }},
    {"popLibsParity", read_flag<&Options::poplibs_parity>},
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

bool read_option(std::string_view key, const Entry& entry, Options& options) {
  for (const auto& [name, read] : kOptionKeys)
    if (name == key) return read(entry, options), true;
  for (const FixedKey& fixed : kFixedKeys)
    if (fixed.key == key) return check_fixed(fixed, entry), true;
  for (const RefusedKey& refused : kRefusedKeys)
    if (refused.key == key)
      throw_invalid(fmt::format("{}: {} is {}", entry.where, entry.key, refused.reason));
  return false;
}

}  // namespace

Options parse_options(std::string_view json, std::string_view where, const Options& base) {
  Options options = base;
  const Json document = parse_json(json, where);
  std::vector<std::string_view> legal;
  for (const auto& [name, read] : kOptionKeys) legal.push_back(name);
  for (const FixedKey& fixed : kFixedKeys) legal.push_back(fixed.key);
  read_object({where, "", document}, legal, [&](std::string_view key, const Entry& entry) {
    return read_option(key, entry, options);
  });
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
  return read_constraints({where, "", document});
}

}  // namespace tessera::planner
