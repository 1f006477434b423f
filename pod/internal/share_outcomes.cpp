#include "tessera/pod/internal/share_outcomes.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "tessera/base/error.hpp"

namespace tessera::pod::internal {
namespace {

// Appends values to a list of bytes.
class Packer {
 public:
  explicit Packer(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  void operator()(std::span<const std::byte> data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }
  void operator()(const std::string& text) {
    (*this)(std::int64_t(text.size()));
    (*this)(std::as_bytes(std::span(text)));
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(const T& value) { (*this)(std::as_bytes(std::span(&value, 1))); }

 private:
  std::vector<std::byte>& bytes_;
};

// Reads them back in the same order.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : rest_(bytes) {}

  void operator()(std::span<std::byte> data) {
    TESSERA_ASSERT(data.size() <= rest_.size());  // all ranks pack the same fields
    std::copy_n(rest_.begin(), data.size(), data.begin());
    rest_ = rest_.subspan(data.size());
  }
  void operator()(std::string& text) {
    std::int64_t size = 0;
    (*this)(size);
    text.resize(std::size_t(size));
    (*this)(std::as_writable_bytes(std::span(text)));
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T& value) { (*this)(std::as_writable_bytes(std::span(&value, 1))); }

 private:
  std::span<const std::byte> rest_;
};

template <class Visit, class Outcome>
void for_each_field(Visit&& visit, Outcome& outcome) {
  visit(outcome.cycles.value);
  visit(outcome.moved.value);
  visit(outcome.stopped);
  auto& sums = outcome.checksums;
  visit(sums.exact);
  visit(sums.compared);
  visit(sums.recomputed);
  visit(sums.damaged);
  visit(sums.first_failure);
  visit(sums.first_damage);
  visit(sums.wrong_rows);
  visit(sums.wrong_cols);
  visit(sums.first_wrong_row);
  visit(sums.first_wrong_col);
  visit(sums.worst);
}

void pack(const DeviceOutcome& outcome, Packer& packer) {
  for_each_field(packer, outcome);
  packer(outcome.struck.has_value());
  const DeviceStruck struck = outcome.struck.value_or(DeviceStruck());
  packer(struck.slot);
  packer(struck.byte);
}

void unpack(Unpacker& unpacker, DeviceOutcome& outcome) {
  for_each_field(unpacker, outcome);
  bool has_struck = false;
  DeviceStruck struck;
  unpacker(has_struck);
  unpacker(struck.slot);
  unpacker(struck.byte);
  if (has_struck) outcome.struck = struck;
}

}  // namespace

void share_outcomes(const DeviceRanks& ranks, const SharedDevices& shared,
                    std::vector<DeviceOutcome>& outcomes) {
  if (ranks.size == 1) return;
  std::vector<std::byte> own;
  Packer packer(own);
  for (const std::size_t d : shared.devices) {
    if (shared.rank_of(d) != ranks.rank) continue;
    pack(outcomes[d], packer);
    packer(std::span<const std::byte>(shared.data(d)));
  }
  const std::vector<std::vector<std::byte>> all = ranks.gather("results of devices", own);
  std::vector<Unpacker> unpackers(all.begin(), all.end());
  for (const std::size_t d : shared.devices) {
    const int rank = shared.rank_of(d);
    if (rank == ranks.rank) continue;
    unpack(unpackers[std::size_t(rank)], outcomes[d]);
    unpackers[std::size_t(rank)](shared.data(d));
  }
}

std::optional<std::size_t> least_of(const DeviceRanks& ranks, std::optional<std::size_t> own) {
  if (ranks.size == 1) return own;
  constexpr std::int64_t kNone = -1;
  const std::int64_t number = own ? std::int64_t(*own) : kNone;
  std::vector<std::byte> bytes;
  Packer{bytes}(number);
  std::optional<std::size_t> least;
  for (const std::vector<std::byte>& other : ranks.gather("devices that do not fit", bytes)) {
    std::int64_t found = kNone;
    Unpacker{other}(found);
    if (found != kNone) least = std::min(least.value_or(std::size_t(found)), std::size_t(found));
  }
  return least;
}

}  // namespace tessera::pod::internal
