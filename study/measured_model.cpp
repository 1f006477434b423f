#include "tessera/study/measured_model.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::study {

// Runs of layers whose type the caller does not know.
class MeasuredModel::Runs {
 public:
  virtual ~Runs() = default;
  virtual Cost run(const sparse::Csr<float>& weights, const host::HostOptions& options) = 0;
};

template <class T>
class MeasuredModel::TypedRuns final : public Runs {
 public:
  TypedRuns(const Problem& layer, int threads, double spread, const Stop& is_stopped)
      : layer_(layer), executor_(make_executor(threads)), spread_(spread), is_stopped_(is_stopped) {
    layer_.data_type = data_type_of<T>();
  }

  Cost run(const sparse::Csr<float>& weights, const host::HostOptions& options) override {
    Problem problem = layer_;
    problem.block = weights.block;
    problem.density = double(weights.blocks()) / places_of(problem, problem.block);
    host::HostLayer layer(problem, host::read_host_cpu(), *executor_, options);
    layer.set_weights(weights);
    const auto s = std::as_const(s_).view(), q = std::as_const(q_).view();
    std::vector<float> gradients(weights.values.size());
    Cost cost{.value = 0, .block = weights.block, .density = problem.density};
    double spread = 0;
    const auto add = [&](Pass pass, const auto& run_pass) {
      const MedianTimes median = measure(run_pass, is_stopped_, spread_);
      cost.passes.emplace_back(pass, median.times.seconds);
      *cost.value += median.times.seconds;
      spread += median.spread * median.times.seconds;
    };
    add(Pass::Fwd, [&] { return layer.template forward<T>(s, out_q_.view()); });
    if (layer_.grad_a) add(Pass::GradA, [&] { return layer.template grad_a<T>(q, out_s_.view()); });
    if (layer_.grad_w) add(Pass::GradW, [&] { return layer.template grad_w<T>(q, s, gradients); });
    if (*cost.value > 0) cost.spread = spread / *cost.value;
    return cost;
  }

 private:
  Problem layer_;
  std::unique_ptr<Executor> executor_;
  double spread_;
  Stop is_stopped_;
  Matrix<T> s_ = random_matrix<T>(layer_.size.y, layer_.size.z, 2);
  Matrix<T> q_ = random_matrix<T>(layer_.size.x, layer_.size.z, 3);
  Matrix<T> out_q_{layer_.size.x, layer_.size.z}, out_s_{layer_.size.y, layer_.size.z};
};

MeasuredModel::MeasuredModel(const Problem& layer, int threads, double spread, Stop is_stopped)
    : CostModel(layer), threads_(threads), spread_(spread), is_stopped_(std::move(is_stopped)) {
  with_type(layer.data_type, [&]<class T>(T) {
    runs_ = std::make_unique<TypedRuns<T>>(layer, threads, spread, is_stopped_);
  });
}

MeasuredModel::~MeasuredModel() = default;

Cost MeasuredModel::sparse(const Form& form) {
  if (form.pattern != nullptr) {
    const sparse::Csr<double> blocks = in_whole_blocks(*form.pattern, form.block);
    return runs_->run(sparse::cast<float>(blocks), {});
  }
  const Problem asked = problem(form);
  const Dims whole = asked.size_in_blocks();
  return runs_->run(sparse::random_pattern(whole.x, whole.y, form.block, form.density, /*seed=*/1),
                    {});
}

Cost MeasuredModel::dense(std::int64_t batch) {
  TESSERA_ASSERT(batch == 0 || batch == layer().size.z);
  if (dense_) return *dense_;
  constexpr double kDensity = 0.01;  // of a pattern that dense kernels fill with zeros
  const sparse::Csr<float> weights =
      sparse::random_pattern(layer().size.x, layer().size.y, {1, 1}, kDensity, /*seed=*/1);
  std::vector<Cost> all;
  const auto add = [&](Runs& runs, DataType type) {
    for (const bool own : {false, true}) {
      all.push_back(runs.run(
          weights, {.dense = host::DenseChoice::Always, .own_dense_kernel = own, .rates = {}}));
      all.back().is_dense = true;
      all.back().density = 1;
      all.back().kernel =
          fmt::format("{}, {}", own ? "own kernel" : host::dense_kernel_name(), to_string(type));
    }
  };
  add(*runs_, layer().data_type);
  if (layer().data_type != DataType::Float) {
    TypedRuns<float> in_float(layer(), threads_, spread_, is_stopped_);
    add(in_float, DataType::Float);
  }
  dense_ = *cheapest_of(all);
  return *dense_;
}

}  // namespace tessera::study
