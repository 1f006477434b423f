#include "tessera/train/machine_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <variant>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/runtime/dense_grad_w.hpp"

namespace tessera::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The words of a bucket name the places of its values, so equal words mean equal places.
std::int64_t buckets_that_differ(const partitioner::Buckets& before,
                                 const partitioner::Buckets& after) {
  const std::int64_t buckets = after.grid.buckets();
  std::int64_t count = 0;
  std::visit(
      [&](const auto& now) {
        const auto& old = std::get<std::decay_t<decltype(now)>>(before.meta);
        const std::int64_t words = std::ssize(now) / buckets;
        for (auto at = now.begin(); at != now.end(); at += words)
          count += !std::equal(at, at + words, old.begin() + (at - now.begin()));
      },
      after.meta);
  return count;
}

std::int64_t bytes_of_a_bucket(const partitioner::TileGrid& grid) {
  return (grid.meta_words + grid.grad_a_words) * grid.word_bits / 8;
}

// Returns a power of two by which the largest magnitude comes to be in [8, 16); 1 if all are 0 or
// one is not finite.
float scale_of(MatrixView<const float> gradients) {
  float largest = 0;
  for (std::int64_t r = 0; r < gradients.rows; ++r)
    for (std::int64_t c = 0; c < gradients.cols; ++c)
      largest = std::max(largest, std::abs(gradients(r, c)));
  constexpr int kExponent = 4;
  int exponent = 0;
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  std::frexp(largest, &exponent);  // largest is in [2^(exponent - 1), 2^exponent)
  return std::ldexp(1.0f, kExponent - exponent);
}

Matrix<Half> rounded(MatrixView<const float> from, float scale = 1) {
  Matrix<Half> to(from.rows, from.cols);
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; ++c) to(r, c) = Half(from(r, c) * scale);
  return to;
}

void widen(const Matrix<Half>& from, float scale, MatrixView<float> to) {
  for (std::int64_t r = 0; r < to.rows; ++r)
    for (std::int64_t c = 0; c < to.cols; ++c) to(r, c) = float(from(r, c)) * scale;
}

}  // namespace

bool MachineLayer::is_half() const { return layer_.buckets().grid.data_type == DataType::Half; }

MachineLayer::PreparedUpdate MachineLayer::prepare_update(const sparse::PatternChange& change) {
  PreparedUpdate update;
  if (change.removed.empty() && change.added.empty()) return update;
  if (!spare_) {
    const auto start = std::chrono::steady_clock::now();
    spare_.emplace(make_());
    making_seconds_ = seconds_since(start);
  }
  update.placed_ = sparse::place_change(weights(), change);
  const auto misfit = spare_->set_weights(sparse::apply_change<float>(weights(), update.placed_));
  if (misfit)
    throw Error(ErrorCode::NoSolution,
                fmt::format("the changed weights do not fit their buckets: {}", misfit->message));
  return update;
}

void MachineLayer::commit(PreparedUpdate&& update) {
  if (update.placed_.empty()) return;
  std::swap(layer_, *spare_);
  count_update();
}

// The layer of the pattern before is now the spare one.
void MachineLayer::count_update() {
  ++traffic_.updates;
  const partitioner::Buckets& now = layer_.buckets();
  const std::int64_t differ = buckets_that_differ(spare_->buckets(), now);
  const std::int64_t value_bytes = now.values_per_bucket() * bytes_of(now.grid.data_type);
  const Bytes values(now.grid.buckets() * value_bytes);
  // The rest steers propagation and moves values to a layout of GradA; it is sent as a whole.
  const Bytes rest =
      layer_.pattern_bytes() - values - Bytes(now.grid.buckets() * bytes_of_a_bucket(now.grid));
  traffic_.words += Bytes(differ * bytes_of_a_bucket(now.grid)) + rest;
  traffic_.values += Bytes(differ * value_bytes);
  traffic_.read += values;
}

std::vector<sparse::BlockAt> MachineLayer::largest_gradients(const sparse::Csr<float>& taken,
                                                             std::int64_t k, Pool pool,
                                                             const GradientBatch& batch,
                                                             std::string_view name) {
  if (k == 0) return {};
  const auto start = std::chrono::steady_clock::now();
  const auto& [problem, machine] = searched_.value();
  runtime::DenseGradW search =
      runtime::search_for(problem, k, machine, device::ExchangeMode::Share, *executor_);
  // Means order blocks of one shape as sums do.
  const auto score = pool == Pool::Max ? codelets::BlockScore::Max : codelets::BlockScore::Sum;
  runtime::LargestGradients found =
      is_half() ? search.largest<Half>(taken, k, score,
                                       rounded(batch.q_grad, scale_of(batch.q_grad)).view(),
                                       rounded(batch.s).view(), name)
                : search.largest<float>(taken, k, score, batch.q_grad, batch.s, name);
  ++search_.searches;
  search_.runs += found.runs;
  for (const device::PhaseTotal& phase : found.ledger.phases())
    (phase.phase == Phase::Reduce ? search_.selection : search_.gradient) += phase.total();
  search_.upload += found.upload;
  search_.download += found.download;
  search_.seconds += seconds_since(start);
  return std::move(found.places);
}

template <class T>
void MachineLayer::forward(MatrixView<const T> s, MatrixView<T> q,
                           const layer::PassOptions& options) {
  // A pass cannot be stopped here, so its result is not looked at.
  if (is_half()) {
    const Matrix<Half> in = rounded(s);
    Matrix<Half> out(q.rows, q.cols);
    static_cast<void>(layer_.forward<Half>(in.view(), out.view(), options, run_of(Pass::Fwd)));
    widen(out, 1, q);
  } else {
    static_cast<void>(layer_.forward<T>(s, q, options, run_of(Pass::Fwd)));
  }
}

template <class T>
void MachineLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                          const layer::PassOptions& options) {
  if (is_half()) {
    const float scale = scale_of(q_grad);
    const Matrix<Half> in = rounded(q_grad, scale);
    Matrix<Half> out(s_grad.rows, s_grad.cols);
    static_cast<void>(layer_.grad_a<Half>(in.view(), out.view(), options, run_of(Pass::GradA)));
    widen(out, 1 / scale, s_grad);
  } else {
    static_cast<void>(layer_.grad_a<T>(q_grad, s_grad, options, run_of(Pass::GradA)));
  }
}

template <class T>
void MachineLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                          std::span<float> gradients) {
  if (is_half()) {
    const float scale = scale_of(q_grad);
    const Matrix<Half> left = rounded(q_grad, scale), right = rounded(s);
    static_cast<void>(
        layer_.grad_w<Half>(left.view(), right.view(), gradients, {}, run_of(Pass::GradW)));
    for (float& gradient : gradients) gradient /= scale;
  } else {
    static_cast<void>(layer_.grad_w<T>(q_grad, s, gradients, {}, run_of(Pass::GradW)));
  }
}

template void MachineLayer::forward(MatrixView<const float>, MatrixView<float>,
                                    const layer::PassOptions&);
template void MachineLayer::grad_a(MatrixView<const float>, MatrixView<float>,
                                   const layer::PassOptions&);
template void MachineLayer::grad_w(MatrixView<const float>, MatrixView<const float>,
                                   std::span<float>);

}  // namespace tessera::train
