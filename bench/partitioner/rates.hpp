#pragma once

#include <string>

#include "tessera/bench/partitioner/workload.hpp"
#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Words, source map and values, from the matrix into storage that is there.
void encode_rate(Report& report, const std::string& name, const Layer& layer, double bar);
// The same with values of two bytes, of which blocks of 16 x 16 have 512 in place of 1024.
void encode_rate_half(Report& report, const std::string& name, const Layer& layer, double bar);
void thread_ratio(Report& report, const std::string& name, const Layer& layer);
void column_splits(Report& report);
void decode_ratio(Report& report, const std::string& name, const Layer& layer);

}  // namespace tessera::bench
