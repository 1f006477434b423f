#pragma once

#include <map>
#include <string>
#include <vector>

#include "tessera/tests/style/rules.hpp"
#include "tessera/tests/style/source_tree.hpp"

namespace tessera::style {

// A field that a caller can set.
struct OptionField {
  std::string file;  // the header
  std::string owner;
  std::string name;

  std::string full_name() const { return owner + "::" + name; }
  friend bool operator==(const OptionField&, const OptionField&) = default;
};

// Returns the fields of every struct of the header whose name ends in "Options", and of the structs
// of the same header that are types of these fields. Empty for sources, private headers, tests and
// benchmarks.
std::vector<OptionField> option_fields(const SourceFile& file);

// Maps "Owner::name" of a field to the reason why no source reads it.
using UnreadFields = std::map<std::string, std::string>;

// A request that changes nothing is a defect. Every option field is read, as ".name" or "->name"
// that is not assigned to, in a source that does more than parsing, checking or printing options.
// Exceptions must exist and be needed. This is a text search: it cannot distinguish fields with
// equal names.
Complaints check_options_read(const std::vector<SourceFile>& files, const UnreadFields& exceptions);

}  // namespace tessera::style
