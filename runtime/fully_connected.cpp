#include "tessera/runtime/fully_connected.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/runtime/dense_pass.hpp"
#include "tessera/runtime/grad_w_pass.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"

namespace tessera::runtime {
namespace {

template <class T>
device::ByteRows bytes_of_view(MatrixView<T> view) {
  using Plain = std::remove_const_t<T>;
  // Programs only read what they are given to read.
  return {reinterpret_cast<std::byte*>(const_cast<Plain*>(view.data)), view.rows,
          view.cols * std::int64_t(sizeof(T)), view.row_stride * std::int64_t(sizeof(T))};
}

template <class To, class From>
void copy_view(MatrixView<From> from, MatrixView<To> to) {
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; ++c) to(r, c) = from(r, c);
}

// An operand in the grid's size: the caller's own memory when it fits, else a zero-padded copy.
template <class T>
class Padded {
 public:
  Padded(MatrixView<T> view, std::int64_t rows, std::int64_t cols) : view_(view) {
    if (view.rows == rows && view.cols == cols && view.rows_are_contiguous() &&
        view.row_stride >= cols)
      return;
    copy_ = Matrix<std::remove_const_t<T>>(rows, cols);
  }
  bool copied() const { return copy_.has_value(); }
  void read() {
    if (copied()) copy_view(view_, copy_->view());
  }
  void write_back() {
    if (!copied()) return;
    copy_view(std::as_const(*copy_).view().sub({0, view_.rows}, {0, view_.cols}), view_);
  }
  device::ByteRows bytes() {
    return copied() ? bytes_of_view(copy_->view()) : bytes_of_view(view_);
  }

 private:
  MatrixView<T> view_;
  std::optional<Matrix<std::remove_const_t<T>>> copy_;
};

void check_shape(const char* name, std::int64_t rows, std::int64_t cols, std::int64_t want_rows,
                 std::int64_t want_cols) {
  if (rows != want_rows || cols != want_cols)
    throw Error(ErrorCode::InvalidArgument, fmt::format("{} is {} x {}; this layer needs {} x {}",
                                                        name, rows, cols, want_rows, want_cols));
}

// The weights in the grid's blocks and size. Blocks of which neither divides the other are taken
// apart first.
sparse::Csr<float> in_grid(const sparse::Csr<float>& weights, const partitioner::TileGrid& grid) {
  const auto fit = [](std::int64_t a, std::int64_t b) { return a % b == 0 || b % a == 0; };
  const BlockShape from = weights.block, to = grid.block;
  const bool smaller = from.rows % to.rows == 0 && from.cols % to.cols == 0;
  if (smaller) return sparse::with_shape(sparse::with_block(weights, to), grid.size.x, grid.size.y);
  const bool merges = fit(from.rows, to.rows) && fit(from.cols, to.cols) &&
                      grid.size.x % from.rows == 0 && grid.size.y % from.cols == 0;
  const sparse::Csr<float> parts = merges ? weights : sparse::with_block(weights, BlockShape{1, 1});
  return sparse::with_block(sparse::with_shape(parts, grid.size.x, grid.size.y), to);
}

}  // namespace

partitioner::TileGrid tile_grid(const planner::Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine) {
  Dims grains = ceil_div(problem.size_in_blocks(), plan.grain);
  grains.z = round_up(grains.z, plan.partition.z);  // equal z on every tile
  const Dims padded = grains * plan.grain;
  return {.size = {1, padded.x, padded.y, padded.z},
          .block = plan.block,
          .z_grain = plan.grain.z,
          .splits = plan.partition,
          .data_type = problem.data_type,
          .workers = machine.workers,
          .word_bits = machine.word_bits,
          .grad_w = problem.grad_w,
          .separate_grad_a = problem.grad_a && !plan.shared_buckets(),
          .meta_words = plan.fwd_meta_words.value,
          .grad_a_words = plan.grad_a_meta_words.value,
          .blocks = plan.blocks_per_bucket()};
}

struct FullyConnected::State {
  planner::Problem problem;
  partitioner::TileGrid grid;
  std::optional<DensePass> fwd, grad_a;
  std::optional<GradWPass> grad_w;
  std::optional<partitioner::Buckets> buckets;
  std::vector<std::byte> values;  // bucket order, the layer's type
  sparse::Csr<float> given;       // the weights' pattern; values unused
  sparse::Csr<float> pattern;     // the same in the grid's block and size; values unused

  template <class T>
  void check_call(bool has_pass, const char* pass) const {
    if (data_type_of<T>() != problem.data_type)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: operands are {} but the layer is {}", pass,
                              to_string(data_type_of<T>()), to_string(problem.data_type)));
    if (!has_pass)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: the layer was planned without this pass", pass));
    if (!buckets)
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", pass));
  }
  BucketImage image() const { return {&*buckets, values.data()}; }
  template <class T>
  void fill_values(std::span<const float> from);
};

template <class T>
void FullyConnected::State::fill_values(std::span<const float> from) {
  const std::vector<T> in_order = partitioner::to_bucket_order<T, float>(*buckets, from);
  const auto bytes = std::as_bytes(std::span(in_order));
  values.assign(bytes.begin(), bytes.end());
}

FullyConnected::FullyConnected(const planner::Problem& problem, const planner::Plan& plan,
                               const device::Machine& machine, device::ExchangeMode mode,
                               Executor& executor)
    : state_(std::make_unique<State>()) {
  planner::check_problem(problem);
  if (problem.size.g != 1)
    throw Error(ErrorCode::InvalidArgument, "the runtime runs plans of one group; plan with g = 1");
  state_->problem = problem;
  state_->grid = tile_grid(problem, plan, machine);
  partitioner::check(state_->grid);
  PassSpec spec{state_->grid, plan.fwd, problem.partials_type};
  state_->fwd.emplace(spec, machine, mode, executor);
  spec.method = plan.grad_a;
  if (problem.grad_a) state_->grad_a.emplace(spec, machine, mode, executor);
  spec.method = plan.grad_w;
  const auto exchange =
      plan.grad_w_exchange_buckets ? GradWExchange::Buckets : GradWExchange::Inputs;
  if (problem.grad_w) state_->grad_w.emplace(spec, exchange, machine, mode, executor);
}

FullyConnected::~FullyConnected() = default;
FullyConnected::FullyConnected(FullyConnected&&) noexcept = default;
FullyConnected& FullyConnected::operator=(FullyConnected&&) noexcept = default;

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    const sparse::Csr<float>& weights, const partitioner::EncodeOptions& options) {
  State& s = *state_;
  sparse::check(weights);
  const Dims whole = s.problem.size_in_blocks();
  check_shape("the weight matrix", weights.rows, weights.cols, whole.x, whole.y);
  if (weights.block != s.problem.block)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the weights have {}x{} blocks; this layer was planned for {}x{}",
                            weights.block.rows, weights.block.cols, s.problem.block.rows,
                            s.problem.block.cols));
  sparse::Csr<float> pattern = in_grid(weights, s.grid);
  partitioner::EncodeResult encoded = partitioner::encode(pattern, s.grid, options);
  if (encoded.misfit) return encoded.misfit;
  s.buckets = std::move(encoded.buckets);
  s.given = weights;
  s.pattern = std::move(pattern);
  if (s.problem.data_type == DataType::Half)
    s.fill_values<Half>(s.pattern.values);
  else
    s.fill_values<float>(s.pattern.values);
  return std::nullopt;
}

template <class T>
device::Ledger FullyConnected::forward(MatrixView<const T> s, MatrixView<T> q) {
  State& state = *state_;
  state.check_call<T>(true, "forward");
  const Dims &size = state.problem.size, &padded = state.grid.size;
  check_shape("s", s.rows, s.cols, size.y, size.z);
  check_shape("q", q.rows, q.cols, size.x, size.z);
  Padded<const T> in(s, padded.y, padded.z);
  Padded<T> out(q, padded.x, padded.z);
  in.read();
  device::Ledger ledger = state.fwd->run(state.image(), in.bytes(), out.bytes());
  out.write_back();
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  State& state = *state_;
  state.check_call<T>(state.grad_a.has_value(), "grad_a");
  const Dims &size = state.problem.size, &padded = state.grid.size;
  check_shape("q_grad", q_grad.rows, q_grad.cols, size.x, size.z);
  check_shape("s_grad", s_grad.rows, s_grad.cols, size.y, size.z);
  Padded<const T> in(q_grad, padded.x, padded.z);
  Padded<T> out(s_grad, padded.y, padded.z);
  in.read();
  device::Ledger ledger = state.grad_a->run(state.image(), in.bytes(), out.bytes());
  out.write_back();
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      sparse::Csr<float>& gradient) {
  State& state = *state_;
  state.check_call<T>(state.grad_w.has_value(), "grad_w");
  const Dims &size = state.problem.size, &padded = state.grid.size;
  check_shape("q_grad", q_grad.rows, q_grad.cols, size.x, size.z);
  check_shape("s", s.rows, s.cols, size.y, size.z);
  Padded<const T> q_in(q_grad, padded.x, padded.z), s_in(s, padded.y, padded.z);
  q_in.read();
  s_in.read();
  std::vector<T> in_order(std::size_t(state.grid.buckets() * state.buckets->values_per_bucket()));
  device::Ledger ledger = state.grad_w->run(state.image(), q_in.bytes(), s_in.bytes(),
                                            reinterpret_cast<std::byte*>(in_order.data()));
  sparse::Csr<float> padded_gradient = state.pattern;
  padded_gradient.values =
      partitioner::from_bucket_order<float, T>(*state.buckets, std::span<const T>(in_order));
  gradient = sparse::on_pattern(padded_gradient, state.given);
  return ledger;
}

const partitioner::Buckets& FullyConnected::buckets() const {
  if (!state_->buckets) throw Error(ErrorCode::InvalidArgument, "buckets: call set_weights first");
  return *state_->buckets;
}

Bytes FullyConnected::high_water() const {
  const State& s = *state_;
  Bytes most = s.fwd->high_water();
  if (s.grad_a) most = std::max(most, s.grad_a->high_water());
  if (s.grad_w) most = std::max(most, s.grad_w->high_water());
  return most;
}

template device::Ledger FullyConnected::forward(MatrixView<const float>, MatrixView<float>);
template device::Ledger FullyConnected::forward(MatrixView<const Half>, MatrixView<Half>);
template device::Ledger FullyConnected::grad_a(MatrixView<const float>, MatrixView<float>);
template device::Ledger FullyConnected::grad_a(MatrixView<const Half>, MatrixView<Half>);
template device::Ledger FullyConnected::grad_w(MatrixView<const float>, MatrixView<const float>,
                                               sparse::Csr<float>&);
template device::Ledger FullyConnected::grad_w(MatrixView<const Half>, MatrixView<const Half>,
                                               sparse::Csr<float>&);

}  // namespace tessera::runtime
