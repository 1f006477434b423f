#include "tessera/pod/internal/device_outcome.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::pod::internal {
namespace {

class Writer {
 public:
  template <class T>
  void number(T value) {
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  void text(const std::string& value) {
    number(std::int64_t(value.size()));
    bytes(std::as_bytes(std::span(value)));
  }
  void bytes(std::span<const std::byte> more) { list.insert(list.end(), more.begin(), more.end()); }

  std::vector<std::byte> list;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> list) : list_(list) {}
  template <class T>
  void number(T& value) {
    bytes(std::as_writable_bytes(std::span(&value, 1)));
  }
  void text(std::string& value) {
    std::int64_t size = 0;
    number(size);
    value.resize(std::size_t(size));
    bytes(std::as_writable_bytes(std::span(value)));
  }
  void bytes(std::span<std::byte> to) {
    TESSERA_ASSERT(to.size() <= list_.size());
    if (!to.empty()) std::memcpy(to.data(), list_.data(), to.size());
    list_ = list_.subspan(to.size());
  }

 private:
  std::span<const std::byte> list_;
};

// Reads or writes all fields.
template <class Fields, class Outcome>
void visit(Fields& fields, Outcome& o) {
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

std::vector<std::byte> pack(const DeviceOutcome& outcome, std::span<const std::byte> results) {
  Writer writer;
  visit(writer, outcome);
  writer.bytes(results);
  return std::move(writer.list);
}

DeviceOutcome unpack(std::span<const std::byte> list, std::span<std::byte> results) {
  Reader reader(list);
  DeviceOutcome outcome;
  visit(reader, outcome);
  reader.bytes(results);
  return outcome;
}

}  // namespace tessera::pod::internal
