#pragma once

#include <string>

#include "tessera/bench/partitioner/workload.hpp"
#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Measures writing words, source map and values of a matrix into existing storage.
void encode_rate(Report& report, const std::string& name, const Layer& layer, double bar);
// Measures the same with values of two bytes. A block of 16 x 16 then has 512 bytes instead of
// 1024.
void encode_rate_half(Report& report, const std::string& name, const Layer& layer, double bar);
void thread_ratio(Report& report, const std::string& name, const Layer& layer);
void column_splits(Report& report);
void decode_ratio(Report& report, const std::string& name, const Layer& layer);

}  // namespace tessera::bench
