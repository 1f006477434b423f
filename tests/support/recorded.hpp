#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/tests/support/trials.hpp"

namespace tessera::test {

// FNV-1a of what is added.
class Digest {
 public:
  void add(const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      state_ = (state_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3ULL;
  }
  void add(std::int64_t number) { add(&number, sizeof(number)); }
  void add(std::string_view text) { add(text.data(), text.size()); }
  std::string text() const {
    std::ostringstream out;
    out << std::hex << state_;
    return out.str();
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

// Returns the kind of a line of a table of tests/data/; no text for a comment.
inline std::string kind_of(const std::string& line) {
  const auto tab = line.find('\t');
  return tab == std::string::npos || line[0] == '#' ? "" : line.substr(0, line.rfind(' ', tab));
}

// Fails if a table has other kinds of cases than these, which its tests compare.
inline void expect_kinds(const std::string& file, const std::set<std::string>& kinds) {
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/data/" + file);
  std::set<std::string> found;
  for (std::string line; std::getline(in, line);)
    if (const std::string kind = kind_of(line); !kind.empty()) found.insert(kind);
  EXPECT_EQ(found, kinds) << file;
}

// The lines of one kind of cases in a table of tests/data/: kind and number of the case, a tab, and
// the record of the case. A line that no case has compared by the end of the table's life is a
// failure. When results are meant to change, the tests that read a table write its new lines to the
// file that TESSERA_RECORD names, instead of comparing: they replace the lines of the table below
// its comments.
class RecordedTable {
 public:
  RecordedTable(const std::string& file, std::string kind) : kind_(std::move(kind)) {
    std::ifstream in(TESSERA_SOURCE_DIR "/tests/data/" + file);
    EXPECT_TRUE(in) << file << " is missing";
    for (std::string line; std::getline(in, line);)
      if (kind_of(line) == kind_)
        records_[line.substr(0, line.find('\t'))] = line.substr(line.find('\t') + 1);
  }
  RecordedTable(const RecordedTable&) = delete;
  RecordedTable& operator=(const RecordedTable&) = delete;
  ~RecordedTable() {
    if (output() != nullptr || kIsSanitized || testing::Test::HasFailure()) return;
    for (const auto& [name, record] : records_)
      ADD_FAILURE() << name << " of the table is no case any more: " << record;
  }

  void expect_none(std::int64_t number) const {
    if (output() != nullptr) return;
    EXPECT_FALSE(records_.contains(name(number))) << name(number) << " has no result";
  }

  // Compares a record with that of the table. `details` are shown when they differ.
  void expect(std::int64_t number, const std::string& record, const std::string& details = "") {
    if (const char* const path = output()) {
      std::ofstream(path, std::ios::app) << name(number) << '\t' << record << '\n';
      return;
    }
    const auto found = records_.find(name(number));
    ASSERT_NE(found, records_.end()) << name(number) << " is not in the table";
    EXPECT_EQ(record, found->second) << name(number) << '\n' << details;
    records_.erase(found);
  }

 private:
  static const char* output() { return std::getenv("TESSERA_RECORD"); }
  std::string name(std::int64_t number) const { return kind_ + ' ' + std::to_string(number); }

  std::string kind_;
  std::map<std::string, std::string> records_;
};

}  // namespace tessera::test
