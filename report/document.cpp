#include "tessera/report/document.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "tessera/base/commit.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/base/version.hpp"
#include "tessera/host/cpu.hpp"

namespace tessera::report {
namespace {

constexpr std::int64_t kStudySchemaVersion = 1;

// Returns the time that documents name.
std::time_t seconds_of_documents() {
  const char* const given = std::getenv("SOURCE_DATE_EPOCH");
  if (given == nullptr) return std::time(nullptr);
  const std::string_view text = given;
  constexpr std::int64_t kMost = 253402300799;  // the end of the year 9999
  std::int64_t seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > kMost)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("SOURCE_DATE_EPOCH is \"{}\"; it must be a whole number of seconds in "
                            "0..{}, or not set",
                            printable(text), kMost));
  return std::time_t(seconds);
}

}  // namespace

const std::string& date_of_today() {
  static const std::string date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(seconds_of_documents()));
  return date;
}

std::string document_head(const std::string& study, bool is_complete) {
  return nlohmann::ordered_json{{"schema_version", kStudySchemaVersion},
                                {"study", study},
                                {"status", is_complete ? "complete" : "partial"},
                                {"version", TESSERA_VERSION},
                                {"commit", commit()},
                                {"host", host::host_cpu_model()},
                                {"date", date_of_today()}}
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tessera::report
