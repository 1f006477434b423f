#include "tessera/tools/run/bucket_file.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/file.hpp"
#include "tessera/runtime/saved_weights.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargestExponent = 2000;  // of a power of two, beyond all doubles

[[noreturn]] void refuse(const std::string& name, const std::string& reason) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", name, reason));
}

// Returns the power of two by which the weights were multiplied.
int exponent_of(const Json& text, const std::string& name) {
  if (!text.contains("scale_exponent") || !text["scale_exponent"].is_number_integer())
    refuse(name, "its plan has no whole number \"scale_exponent\"");
  const auto exponent = text["scale_exponent"].get<std::int64_t>();
  if (std::abs(exponent) > kLargestExponent)
    refuse(name, fmt::format("\"scale_exponent\" of its plan is {}; legal: {} to {}", exponent,
                             -kLargestExponent, kLargestExponent));
  return int(exponent);
}

// The layer as --matrix and the other options would describe it.
void take_layer(const Problem& problem, Arguments& a) {
  a.output_size = problem.size.x;
  a.input_size = problem.size.y;
  a.batch_size = problem.size.z;
  a.groups = problem.size.g;
  a.block = problem.block;
  a.density = problem.density;
  a.data_type = problem.data_type;
  a.partials_type = problem.partials_type;
  a.phase = phase_of(problem.grad_a, problem.grad_w);
}

}  // namespace

BucketFile read_bucket_file(Arguments& a) {
  auto saved = std::make_shared<partitioner::SavedWeights>(
      partitioner::read_saved_weights(read_file(a.buckets), a.buckets));
  const Json text = Json::parse(saved->plan, nullptr, false);
  if (!text.is_object() || !text.contains("planned") || !text["planned"].is_object() ||
      !text.contains("source") || !text["source"].is_string())
    refuse(a.buckets,
           "its plan is not one of tessera run --save-buckets; take the weights with "
           "partitioner::read_saved_weights");
  BucketFile file{.planned = planner::plan_from_json(text["planned"].dump(), a.buckets),
                  .weights = {}};
  const Problem& problem = file.planned.problem;
  take_layer(problem, a);
  Weights& weights = file.weights;
  weights.rows = problem.size.x;
  weights.cols = problem.size.y;
  weights.scale_exponent = exponent_of(text, a.buckets);
  weights.source = fmt::format("{}, encoded from {}", a.buckets, text["source"].get<std::string>());
  const auto executor = make_executor(a.threads);
  try {
    std::vector<sparse::CheckedCsr<float>> all =
        runtime::weights_of(*saved, problem, file.planned.plan, file.planned.machine, *executor);
    weights.matrix = std::move(all.front());
    weights.further.assign(std::make_move_iterator(all.begin() + 1),
                           std::make_move_iterator(all.end()));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    refuse(a.buckets, error.what());
  }
  weights.encoded = std::move(saved);
  return file;
}

std::string bucket_file(const runtime::FullyConnected& layer, const Weights& weights,
                        const planner::PlannedLayer& planned) {
  partitioner::SavedWeights saved = layer.saved_weights();
  saved.plan = Json({{"planned", Json::parse(planner::plan_to_json(planned))},
                     {"scale_exponent", weights.scale_exponent},
                     {"source", weights.source}})
                   .dump(-1, ' ', false, Json::error_handler_t::replace);
  return partitioner::write_saved_weights(saved);
}

void refuse_dense_buckets(bool is_dense) {
  if (is_dense)
    throw Error(ErrorCode::InvalidArgument,
                "--save-buckets: this plan keeps R dense, without buckets; keep R sparse with "
                "--plan-constraints '{\"useDense\": false}'");
}

}  // namespace tessera::tools
