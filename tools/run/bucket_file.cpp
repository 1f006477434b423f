#include "tessera/tools/run/bucket_file.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/runtime/saved_weights.hpp"

namespace tessera::tools {
namespace {

constexpr const char* kKind = "an encoded layer of tessera run";
constexpr std::int64_t kLargestExponent = 2000;  // of a power of two, beyond all doubles

// A layer as it is saved: its buckets, the text of its plan, and what Weights says of their origin.
struct SavedLayer {
  std::string plan, source;
  std::int64_t scale_exponent = 0;
  partitioner::SavedWeights weights;
};

void describe(io::Archive& archive, SavedLayer& layer) {
  archive.text("plan", layer.plan);
  archive.text("source", layer.source);
  archive.whole("scale_exponent", layer.scale_exponent, {-kLargestExponent, kLargestExponent});
  runtime::describe(archive, layer.weights);
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
  SavedLayer saved;
  const auto archive = io::Archive::open(a.buckets, kKind);
  describe(*archive, saved);
  archive->finish();
  BucketFile file{.planned = planner::plan_from_json(saved.plan, a.buckets), .weights = {}};
  const Problem& problem = file.planned.problem;
  take_layer(problem, a);
  Weights& weights = file.weights;
  weights.rows = problem.size.x;
  weights.cols = problem.size.y;
  weights.scale_exponent = int(saved.scale_exponent);
  weights.source = fmt::format("{}, encoded from {}", a.buckets, saved.source);
  const auto executor = make_executor(a.threads);
  try {
    std::vector<sparse::CheckedCsr<float>> all = runtime::weights_of(
        saved.weights, problem, file.planned.plan, file.planned.machine, *executor);
    weights.matrix = std::move(all.front());
    weights.further.assign(std::make_move_iterator(all.begin() + 1),
                           std::make_move_iterator(all.end()));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    archive->refuse(error.what());
  }
  weights.encoded = std::make_shared<partitioner::SavedWeights>(std::move(saved.weights));
  return file;
}

std::string bucket_file(const runtime::FullyConnected& layer, const Weights& weights,
                        const planner::PlannedLayer& planned) {
  SavedLayer saved{planner::plan_to_json(planned), weights.source, weights.scale_exponent,
                   layer.saved_weights()};
  io::Archive archive(kKind);
  describe(archive, saved);
  return archive.bytes();
}

}  // namespace tessera::tools
