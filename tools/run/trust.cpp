#include "tessera/tools/run/trust.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <set>
#include <sstream>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/printable.hpp"

namespace tessera::tools {
namespace {

[[noreturn]] void throw_bad_fault(const std::string& text) {
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("--inject is {}; it must be tile=T,step=S,bit=B with whole numbers in "
                  "0..2^31 - 1, optionally with pass=fwd, bwd or wu, and with device=D of a pod",
                  text));
}

bool read_number(const std::string& text, std::int64_t& number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end && number >= 0 &&
         number <= std::numeric_limits<std::int32_t>::max();
}

bool read_pass(const std::string& text, Pass& pass) {
  if (text == "bwd") pass = Pass::GradA;
  if (text == "wu") pass = Pass::GradW;
  return text == "fwd" || text == "bwd" || text == "wu";
}

}  // namespace

FaultRequest parse_fault(const std::string& text) {
  FaultRequest request;
  std::int64_t tile = -1, step = -1, bit = -1;
  std::istringstream parts(text);
  std::set<std::string> given;
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = std::min(part.find('='), part.size() - 1);
    const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
    if (!given.insert(key).second)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("--inject: {} is given twice in \"{}\"; give it once", printable(key),
                              printable(text)));
    const bool good = key == "tile"     ? read_number(value, tile)
                      : key == "step"   ? read_number(value, step)
                      : key == "bit"    ? read_number(value, bit)
                      : key == "device" ? read_number(value, request.device.emplace())
                                        : key == "pass" && read_pass(value, request.pass);
    if (!good) throw_bad_fault(text);
  }
  if (tile < 0 || step < 0 || bit < 0) throw_bad_fault(text);
  request.fault = {TileId(tile), step, bit};
  return request;
}

void check_fault_pass(const Arguments& a) {
  if (!a.fault) return;
  const Pass pass = a.fault->pass;
  if (pass == Pass::Fwd || (pass == Pass::GradA ? a.grad_a() : a.grad_w())) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("--inject: the fault is for {}, and this layer has no such pass",
                          to_string(pass)));
}

std::string self_check_note(Pass pass, const verify::Checksums& checksums) {
  return fmt::format("self-check of {}: {}", to_string(pass), to_string(checksums));
}

std::string fault_note(const Arguments& a, const std::optional<device::Struck>& struck,
                       bool changed) {
  const std::string place = a.pod.is_used()
                                ? fmt::format("fault on device {}: ", a.fault->device.value_or(0))
                                : "fault: ";
  if (!struck)
    return place +
           "no bit was flipped; the pass has no such step, or the tile uses no such bit in it";
  return place + fmt::format("one bit of byte {} of \"{}\" was flipped; the results {}",
                             struck->byte, struck->slot,
                             changed ? "changed" : "did not change: harmless");
}

}  // namespace tessera::tools
