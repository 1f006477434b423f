#pragma once

#include <stdexcept>
#include <string>

#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::test {

// Returns a table of bench/results/.
inline std::string results_table(const std::string& name) {
  return read_file(std::string(TESSERA_SOURCE_DIR "/bench/results/") + name);
}

// Returns the rows that `./dev results` writes for the output of a command: aligned columns become
// tab-separated ones, and everything else a comment.
inline std::string as_tsv(const std::string& output) {
  const TemporaryFolder folder;
  const std::string file = folder.write("output", output);
  const Outcome rows = run({"awk", "-f", TESSERA_SOURCE_DIR "/bench/as_tsv.awk", file});
  if (rows.exit != 0) throw std::runtime_error("awk: " + rows.err);
  return rows.out;
}

}  // namespace tessera::test
