#pragma once

#include <cstdint>
#include <limits>

#include "tessera/base/executor.hpp"
#include "tessera/base/problem.hpp"

namespace CLI {
class Option;
}

// Checks of numbers on a command line. CLI11's own read 010 as eight, take nan for a number of any
// range and print the largest double with 309 digits.
namespace tessera::tools {

using tessera::kLargestSize;
using tessera::kMostThreads;

// Makes the command line accept only whole decimal numbers in [least, most] for an option, and
// returns the option. The message for any other text names the value and the range.
CLI::Option* require_whole(CLI::Option* option, std::int64_t least, std::int64_t most);

// Makes the command line accept only finite numbers in [least, most] for an option, and returns
// the option. The message for any other text names the value and the range.
CLI::Option* require_number(CLI::Option* option, double least,
                            double most = std::numeric_limits<double>::max());

// Makes the command line accept only whole decimal numbers in 0..2^64 - 1, and returns the option.
CLI::Option* require_seed(CLI::Option* option);

}  // namespace tessera::tools
