#include "tessera/bench/self_check/trial.hpp"

#include <array>
#include <span>
#include <utility>

#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::bench {

std::vector<CheckedLayer> checked_layers() {
  const auto layer = [](std::string name, BlockShape block, DataType type,
                        DataType sums = DataType::Float, Dims size = {1, 48, 64, 8}) {
    return CheckedLayer{std::move(name),
                        {.size = size,
                         .block = block,
                         .density = 0.3,
                         .data_type = type,
                         .partials_type = sums,
                         .grad_a = true,
                         .grad_w = true}};
  };
  using enum DataType;
  return {layer("float, elements", {1, 1}, Float),
          layer("float, elements, z 64", {1, 1}, Float, Float, {1, 32, 48, 64}),
          layer("float, blocks 4", {4, 4}, Float),
          layer("half, elements", {1, 1}, Half),
          layer("half, elements, z 64", {1, 1}, Half, Float, {1, 32, 48, 64}),
          layer("half, blocks 8", {8, 8}, Half),
          layer("half, blocks 8, half sums", {8, 8}, Half, Half),
          layer("bfloat16, elements", {1, 1}, BFloat16),
          layer("bfloat16, blocks 4", {4, 4}, BFloat16)};
}

Tally& Tally::operator+=(const Tally& other) {
  struck += other.struck;
  refused += other.refused;
  beyond += other.beyond;
  seen += other.seen;
  alarms += other.alarms;
  return *this;
}

class CheckTrial::Any {
 public:
  virtual ~Any() = default;
  virtual bool run(Pass pass, const runtime::PassOptions& options) = 0;
  virtual verify::Verdict verdict(Pass pass) const = 0;

  device::Machine machine;
  std::array<std::int64_t, 3> steps{};  // by pass
  std::int64_t bits = 0;                // of the fullest tile
};

template <class T>
class CheckTrial::Typed final : public CheckTrial::Any {
 public:
  Typed(const CheckedLayer& of, device::ExchangeMode mode, std::uint64_t seed, Executor& executor)
      : problem_(of.problem),
        s_(random_matrix<T>(problem_.size.y, problem_.size.z, seed + 1)),
        q_grad_(random_matrix<T>(problem_.size.x, problem_.size.z, seed + 2)),
        q_(problem_.size.x, problem_.size.z),
        s_grad_(problem_.size.y, problem_.size.z) {
    machine = device::machine_preset("gc200");
    machine.tiles = of.tiles;
    plan_ = planner::plan_or_throw(problem_, machine, planner::sparse_options());
    layer_.emplace(problem_, plan_, machine, mode, executor);
    weights_ = sparse::random_pattern(problem_.size.x, problem_.size.y, problem_.block,
                                      problem_.density * 0.8, seed);
    Random random(seed + 3);
    for (float& v : weights_.values) v = float(T(float(2 * random.unit() - 1)));
    if (const auto misfit = layer_->set_weights(weights_))
      throw Error(ErrorCode::Internal, misfit->message);
    gradient_ = weights_;
    bits = 8 * layer_->high_water().value;
    for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
      run(pass, {});
      steps[std::size_t(pass)] = std::ssize(ledger_.steps);
    }
  }

  bool run(Pass pass, const runtime::PassOptions& options) override {
    const auto s = std::as_const(s_).view(), q_grad = std::as_const(q_grad_).view();
    if (pass == Pass::Fwd) return layer_->template forward<T>(s, q_.view(), options, ledger_);
    if (pass == Pass::GradA)
      return layer_->template grad_a<T>(q_grad, s_grad_.view(), options, ledger_);
    return layer_->template grad_w<T>(q_grad, s, gradient_.values, options, ledger_);
  }

  verify::Verdict verdict(Pass pass) const override {
    const verify::Rounding rounding{problem_.data_type, problem_.partials_type,
                                    planner::partial_sums(plan_, pass)};
    if (pass == Pass::Fwd)
      return verify::verify_product<T>(weights_, s_.view(), q_.view(), rounding);
    if (pass == Pass::GradA)
      return verify::verify_product<T>(sparse::transpose(weights_), q_grad_.view(), s_grad_.view(),
                                       rounding);
    return verify::verify_gradient<T>(weights_, gradient_, q_grad_.view(), s_.view(), rounding);
  }

 private:
  Problem problem_;
  planner::Plan plan_;
  std::optional<runtime::FullyConnected> layer_;
  sparse::Csr<float> weights_, gradient_;
  Matrix<T> s_, q_grad_, q_, s_grad_;
  device::Ledger ledger_;
};

CheckTrial::CheckTrial(const CheckedLayer& layer, device::ExchangeMode mode, std::uint64_t seed,
                       Executor& executor)
    : any_(with_type(layer.problem.data_type, [&](auto zero) -> std::unique_ptr<Any> {
        return std::make_unique<Typed<decltype(zero)>>(layer, mode, seed, executor);
      })) {}
CheckTrial::~CheckTrial() = default;

void CheckTrial::run(Pass pass, bool is_checked) {
  verify::Checksums checksums;
  any_->run(pass, {.self_check = is_checked ? &checksums : nullptr});
}

// A result is beyond its bound by the comparison of every result with double precision, whatever
// the self-check says.
void CheckTrial::flip(Pass pass, Random& random, std::map<std::string, Tally>& by_buffer) {
  verify::Checksums checksums;
  std::optional<device::Struck> struck;
  const device::Fault fault{TileId(random.below(any_->machine.tiles)),
                            random.below(any_->steps[std::size_t(pass)]), random.below(any_->bits)};
  runtime::TilePass options;
  options.pass.self_check = &checksums;
  options.tiles.fault = fault;
  options.tiles.struck = &struck;
  bool is_seen = false;
  try {
    any_->run(pass, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::CheckFailed) throw;
    is_seen = true;
  }
  if (!struck) return;
  Tally& tally = by_buffer[std::string(struck->slot)];
  ++tally.struck;
  if (is_seen && checksums.compared == 0) {  // the pass ended before there were results
    ++tally.refused;
    return;
  }
  const bool is_beyond = !any_->verdict(pass).ok();
  tally.beyond += is_beyond;
  tally.seen += is_beyond && is_seen;
  tally.alarms += is_seen && !is_beyond;
}

std::int64_t CheckTrial::clean_alarms() {
  std::int64_t alarms = 0;
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    try {
      run(pass, true);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::CheckFailed) throw;
      ++alarms;
    }
  }
  return alarms;
}

namespace {

template <class T>
std::int64_t host_alarms_of(Problem problem, int times, std::uint64_t seed, Executor& executor) {
  problem.partials_type = DataType::Float;  // sums on this computer are floats
  const Dims& size = problem.size;
  auto weights = sparse::random_pattern(size.x, size.y, problem.block, problem.density * 0.8, seed);
  Random random(seed);
  for (float& v : weights.values) v = float(T(float(2 * random.unit() - 1)));
  const host::HostCpu cpu{.cores = 1, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
  host::HostLayer layer(problem, cpu, executor);
  layer.set_weights(weights);
  const auto s = random_matrix<T>(size.y, size.z, seed + 1);
  const auto q_grad = random_matrix<T>(size.x, size.z, seed + 2);
  Matrix<T> q(size.x, size.z), s_grad(size.y, size.z);
  std::vector<float> gradients(weights.values.size());
  verify::Checksums checksums;
  host::HostTimes cost;
  const layer::PassOptions options{.self_check = &checksums};
  std::int64_t alarms = 0;
  const auto run = [&](auto&& pass) {
    try {
      pass();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::CheckFailed) throw;
      ++alarms;
    }
  };
  for (int i = 0; i < times; ++i) {
    run([&] { return layer.forward<T>(s.view(), q.view(), options, cost); });
    run([&] { return layer.grad_a<T>(q_grad.view(), s_grad.view(), options, cost); });
    run([&] { return layer.grad_w<T>(q_grad.view(), s.view(), gradients, options, cost); });
  }
  return alarms;
}

}  // namespace

std::int64_t host_alarms(const Problem& problem, int times, std::uint64_t seed,
                         Executor& executor) {
  return with_type(problem.data_type, [&](auto zero) {
    return host_alarms_of<decltype(zero)>(problem, times, seed, executor);
  });
}

}  // namespace tessera::bench
