#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

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

// A table of tests/data/: the name of a case, a tab, and the record of the case. When results are
// meant to change, the tests that read a table write its new lines to the file that TESSERA_RECORD
// names, instead of comparing: they replace the lines of the table below its comments.
class RecordedTable {
 public:
  explicit RecordedTable(const std::string& file) {
    std::ifstream in(TESSERA_SOURCE_DIR "/tests/data/" + file);
    EXPECT_TRUE(in) << file << " is missing";
    for (std::string line; std::getline(in, line);)
      if (const auto tab = line.find('\t'); tab != std::string::npos && line[0] != '#')
        records_[line.substr(0, tab)] = line.substr(tab + 1);
  }

  bool contains(const std::string& name) const { return records_.contains(name); }

  // Compares a record with that of the table. `details` are shown when they differ.
  void expect(const std::string& name, const std::string& record,
              const std::string& details = "") const {
    if (const char* const path = std::getenv("TESSERA_RECORD")) {
      std::ofstream(path, std::ios::app) << name << '\t' << record << '\n';
      return;
    }
    const auto found = records_.find(name);
    ASSERT_NE(found, records_.end()) << name << " is not in the table";
    EXPECT_EQ(record, found->second) << name << '\n' << details;
  }

 private:
  std::map<std::string, std::string> records_;
};

// The name of a case: its kind and its number.
inline std::string case_name(std::string_view kind, std::int64_t number) {
  return std::string(kind) + " " + std::to_string(number);
}

}  // namespace tessera::test
