#include "tessera/pod/internal/device_outcome.hpp"

#include <algorithm>
#include <concepts>
#include <string>

#include "tessera/base/error.hpp"

namespace tessera::pod::internal {
namespace {

// Calls each(field) for all fields.
template <class Each>
void for_each_field(DeviceOutcome& o, const Each& each) {
  verify::Checksums& c = o.checks;
  const auto all = [&](auto&... fields) { (each(fields), ...); };
  all(o.figures.device, o.figures.cycles.value, o.figures.moved.value, o.stopped, c.exact,
      c.compared, c.recomputed, c.damaged, c.first_failure, c.first_damage, c.wrong_rows,
      c.wrong_cols, c.first_wrong_row, c.first_wrong_col, c.worst);
}

std::span<std::byte> bytes_of(auto& number) {
  return std::as_writable_bytes(std::span(&number, 1));
}

}  // namespace

void pack(DeviceOutcome outcome, std::span<const std::byte> results, std::vector<std::byte>& to) {
  const auto add = [&](std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
  };
  for_each_field(outcome, [&]<class T>(T& field) {
    if constexpr (std::same_as<T, std::string>) {
      std::size_t size = field.size();
      add(bytes_of(size));
      add(std::as_bytes(std::span(field)));
    } else {
      add(bytes_of(field));
    }
  });
  add(results);
}

DeviceOutcome unpack(std::span<const std::byte>& from, std::span<std::byte> results) {
  const auto take = [&](std::span<std::byte> bytes) {
    TESSERA_ASSERT(bytes.size() <= from.size());
    std::ranges::copy(from.first(bytes.size()), bytes.begin());
    from = from.subspan(bytes.size());
  };
  DeviceOutcome outcome;
  for_each_field(outcome, [&]<class T>(T& field) {
    if constexpr (std::same_as<T, std::string>) {
      std::size_t size = 0;
      take(bytes_of(size));
      TESSERA_ASSERT(size <= from.size());
      field.resize(size);
      take(std::as_writable_bytes(std::span(field)));
    } else {
      take(bytes_of(field));
    }
  });
  take(results);
  return outcome;
}

}  // namespace tessera::pod::internal
