#include "tessera/pod/internal/device_outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tessera/base/error.hpp"

namespace tessera::pod::internal {
namespace {

// Bytes that are written to a list, or read from one.
struct Stream {
  std::vector<std::byte>* to = nullptr;
  std::span<const std::byte> from;

  void bytes(std::span<std::byte> value) {
    if (to != nullptr) {
      to->insert(to->end(), value.begin(), value.end());
      return;
    }
    TESSERA_ASSERT(value.size() <= from.size());
    std::ranges::copy(from.first(value.size()), value.begin());
    from = from.subspan(value.size());
  }
  template <class T>
  void number(T& value) {
    bytes(std::as_writable_bytes(std::span(&value, 1)));
  }
  void text(std::string& value) {
    auto size = std::int64_t(value.size());
    number(size);
    value.resize(std::size_t(size));
    bytes(std::as_writable_bytes(std::span(value)));
  }
};

// Reads or writes all fields.
void visit(Stream& fields, DeviceOutcome& o) {
  fields.number(o.figures.device);
  fields.number(o.figures.cycles.value);
  fields.number(o.figures.moved.value);
  fields.number(o.checks.exact);
  fields.number(o.checks.compared);
  fields.number(o.checks.recomputed);
  fields.number(o.checks.damaged);
  fields.text(o.checks.first_failure);
  fields.text(o.checks.first_damage);
  fields.number(o.checks.wrong_rows);
  fields.number(o.checks.wrong_cols);
  fields.number(o.checks.first_wrong_row);
  fields.number(o.checks.first_wrong_col);
  fields.number(o.checks.worst);
  fields.number(o.stopped);
}

}  // namespace

std::vector<std::byte> pack(DeviceOutcome outcome, std::span<std::byte> results) {
  std::vector<std::byte> list;
  Stream to{&list, {}};
  visit(to, outcome);
  to.bytes(results);
  return list;
}

DeviceOutcome unpack(std::span<const std::byte> list, std::span<std::byte> results) {
  Stream from{nullptr, list};
  DeviceOutcome outcome;
  visit(from, outcome);
  from.bytes(results);
  return outcome;
}

// Adds the figures of one device's check to those of all, with the device where they name a place.
void add_checksums(const verify::Checksums& one, std::int64_t device, verify::Checksums& all,
                   bool is_first) {
  const auto name = [device](const std::string& place, std::string& first) {
    if (first.empty() && !place.empty()) first = fmt::format("device {}, {}", device, place);
  };
  all.exact = one.exact && (is_first || all.exact);
  all.compared += one.compared;
  all.recomputed += one.recomputed;
  all.damaged += one.damaged;
  all.wrong_rows += one.wrong_rows;
  all.wrong_cols += one.wrong_cols;
  all.worst = std::max(all.worst, one.worst);
  name(one.first_failure, all.first_failure);
  name(one.first_damage, all.first_damage);
  if (all.first_wrong_row < 0) all.first_wrong_row = one.first_wrong_row;
  if (all.first_wrong_col < 0) all.first_wrong_col = one.first_wrong_col;
}

}  // namespace tessera::pod::internal
