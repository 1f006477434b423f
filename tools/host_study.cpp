#include "tessera/tools/host_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/executor.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/host_timing.hpp"

namespace tessera::tools {

double MeasuredLayer::seconds() const {
  double sum = 0;
  for (const OnePass& pass : passes) sum += pass.seconds;
  return sum;
}

double MeasuredLayer::spread() const {
  double sum = 0;
  for (const OnePass& pass : passes) sum += pass.spread;
  return seconds() > 0 ? sum / seconds() : 0;
}

// Runs of layers whose type the caller does not know.
class HostStudy::Runs {
 public:
  virtual ~Runs() = default;
  virtual MeasuredLayer run(const sparse::Csr<float>& weights, double density,
                            const host::HostOptions& options) = 0;
};

template <class T>
class HostStudy::TypedRuns final : public Runs {
 public:
  TypedRuns(const LayerArguments& layer, int threads, double spread)
      : a_(layer), executor_(make_executor(threads)), spread_(spread) {
    a_.data_type = data_type_of<T>();
  }

  MeasuredLayer run(const sparse::Csr<float>& weights, double density,
                    const host::HostOptions& options) override {
    Problem problem = problem_of(a_);
    problem.block = weights.block;
    problem.density = density;
    host::HostLayer layer(problem, host::read_host_cpu(), *executor_, options);
    layer.set_weights(weights);
    const auto s = std::as_const(s_).view(), q = std::as_const(q_).view();
    std::vector<float> gradients(weights.values.size());
    MeasuredLayer measured;
    const auto add = [&](Pass pass, const auto& run_pass) {
      const internal::MedianTimes median = internal::measure(run_pass, spread_);
      const double seconds = median.times.seconds;
      measured.passes.push_back({pass, seconds, median.spread * seconds});
    };
    add(Pass::Fwd, [&] { return layer.template forward<T>(s, out_q_.view()); });
    if (a_.grad_a()) add(Pass::GradA, [&] { return layer.template grad_a<T>(q, out_s_.view()); });
    if (a_.grad_w()) add(Pass::GradW, [&] { return layer.template grad_w<T>(q, s, gradients); });
    return measured;
  }

 private:
  LayerArguments a_;
  std::unique_ptr<Executor> executor_;
  double spread_;
  Matrix<T> s_ = random_matrix<T>(a_.input_size, a_.batch_size, 2);
  Matrix<T> q_ = random_matrix<T>(a_.output_size, a_.batch_size, 3);
  Matrix<T> out_q_{a_.output_size, a_.batch_size}, out_s_{a_.input_size, a_.batch_size};
};

HostStudy::HostStudy(const LayerArguments& layer, int threads, double spread)
    : layer_(layer), threads_(threads), spread_(spread) {
  with_type(layer.data_type,
            [&]<class T>(T) { runs_ = std::make_unique<TypedRuns<T>>(layer, threads, spread); });
}

HostStudy::HostStudy(HostStudy&&) noexcept = default;

HostStudy::~HostStudy() = default;

MeasuredLayer HostStudy::random(BlockShape block, double density) {
  Problem problem = problem_of(layer_);
  problem.block = block;
  const Dims whole = problem.size_in_blocks();
  return runs_->run(sparse::random_pattern(whole.x, whole.y, block, density, /*seed=*/1), density,
                    {});
}

MeasuredLayer HostStudy::pattern(const sparse::Csr<double>& ones, BlockShape block) {
  const sparse::Csr<double> blocks = in_whole_blocks(ones, block);
  const double places = double(blocks.block_rows()) * double(blocks.block_cols());
  return runs_->run(sparse::cast<float>(blocks), double(blocks.blocks()) / places, {});
}

MeasuredLayer HostStudy::fastest_dense() {
  constexpr double kDensity = 0.01;  // of a pattern that dense kernels fill with zeros
  const sparse::Csr<float> weights =
      sparse::random_pattern(layer_.output_size, layer_.input_size, {1, 1}, kDensity, /*seed=*/1);
  std::vector<MeasuredLayer> all;
  const auto add = [&](Runs& runs, DataType type) {
    for (const bool own : {false, true}) {
      all.push_back(
          runs.run(weights, kDensity,
                   {.dense = host::DenseChoice::Always, .own_dense_kernel = own, .rates = {}}));
      all.back().kernel =
          fmt::format("{}, {}", own ? "own kernel" : host::dense_kernel_name(), to_string(type));
    }
  };
  add(*runs_, layer_.data_type);
  if (layer_.data_type != DataType::Float) {
    TypedRuns<float> in_float(layer_, threads_, spread_);
    add(in_float, DataType::Float);
  }
  return *std::ranges::min_element(all, {}, &MeasuredLayer::seconds);
}

}  // namespace tessera::tools
