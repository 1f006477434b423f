#include "tessera/tools/sparse_fc_layer/rank_agreement.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <vector>

namespace tessera::tools {

using distributed::Digest, distributed::Given;

namespace {

void require_same(const std::vector<Given>& given) {
  if (internal::ranks() != nullptr) distributed::require_same(*internal::ranks(), "run", given);
}

}  // namespace

void require_same_options(const Arguments& a) {
  const std::array<std::int64_t, 11> options{is_host(a),
                                             !a.matrix.empty(),
                                             !a.values.empty(),
                                             a.batch_size,
                                             a.block.rows,
                                             a.block.cols,
                                             std::int64_t(a.stop),
                                             std::int64_t(a.data_type),
                                             std::int64_t(a.self_check),
                                             !a.output_dir.empty(),
                                             a.devices_simulated};
  require_same({{"command line", Digest().add(std::span<const std::int64_t>(options)).value(),
                 fmt::format("{}, batch {}, block {} x {}, {}, {}",
                             a.matrix.empty() ? "random weights" : a.matrix, a.batch_size,
                             a.block.rows, a.block.cols, to_string(a.data_type),
                             is_host(a) ? "this computer" : "a modelled machine")}});
}

void require_same_problem(const Problem& problem) {
  require_same({distributed::given_problem(problem)});
}

void require_same_weights(std::span<const sparse::CheckedCsr<float>> weights) {
  if (internal::ranks() != nullptr) require_same({distributed::given_weights(weights)});
}

void require_same_plan(const std::string& plan_json) {
  require_same({{"plan", Digest().add(std::span<const char>(plan_json)).value()}});
}

}  // namespace tessera::tools
