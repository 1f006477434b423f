#pragma once

#include <string>

namespace tessera::report {

// Returns the date of today in UTC, the same in every call of a process; that of SOURCE_DATE_EPOCH,
// if it is set, so that a run can be repeated byte by byte. Throws Error{InvalidArgument} if that
// is no number of seconds.
const std::string& date_of_today();

// Returns the JSON object with which every written study begins: schema_version, study (its name),
// status, version, commit, host (the processor) and date.
std::string document_head(const std::string& study, bool is_complete);

}  // namespace tessera::report
