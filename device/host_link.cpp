#include "tessera/device/host_link.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/file.hpp"
#include "tessera/device/internal/host_link_fields.hpp"
#include "tessera/json/value.hpp"

namespace tessera::device {
namespace {

// A number of the link with its legal range.
struct LinkField {
  const char* key;
  double HostLink::* member;
  double least, most;
  const char* range;
};

const LinkField kLinkFields[] = {
    {"host_bytes_per_second", &HostLink::bytes_per_second, 1, 1e15, "a number in 1..1e15"},
    {"host_latency_seconds", &HostLink::latency_seconds, 0, 1, "a number in 0..1"},
};

}  // namespace

namespace internal {

HostLink read_host_link(json::ObjectReader& fields) {
  HostLink link;
  for (const LinkField& field : kLinkFields) {
    const json::Value* const value = fields.find(field.key);
    if (value == nullptr) continue;
    const json::Place place = fields.place().member(field.key);
    double& number = link.*field.member;
    json::read(*value, place, number);
    if (!(number >= field.least && number <= field.most))
      json::throw_bad(place, *value, field.range);
  }
  return link;
}

}  // namespace internal

HostLink host_link_from_json(std::string_view text, std::string_view where) {
  machine_from_json(text, where);  // checks all keys
  const std::string name = fmt::format("machine {}", where);
  const json::Value value = json::parse(text, name);
  json::ObjectReader fields(value, {name, ""});
  return internal::read_host_link(fields);
}

std::string machine_to_json(const Machine& machine, const HostLink& link) {
  json::Value object = json::parse_own(machine_to_json(machine));
  for (const LinkField& field : kLinkFields) object[field.key] = link.*field.member;
  return object.dump(2) + "\n";
}

HostLink load_host_link(const std::string& name_or_path) {
  const std::vector<std::string> names = machine_names();
  if (std::find(names.begin(), names.end(), name_or_path) != names.end()) return {};
  load_machine(name_or_path);  // refuses what is no file
  return host_link_from_json(read_file(name_or_path), name_or_path);
}

}  // namespace tessera::device
