#include "tessera/tools/run/run_passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stop_token>

#include "tessera/io/array.hpp"
#include "tessera/runtime/batches.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/tools/run/trust.hpp"

namespace tessera::tools {
namespace {

// Adds the check of a part of the results, which begins there.
void add_part_at(std::int64_t row, std::int64_t col, verify::Verdict part, verify::Verdict& all) {
  part.worst_row += row;
  part.worst_col += col;
  if (part.compared > 0) verify::add_part(part, all);
}

// The passes of a layer on operands of T for the whole batch, of which this process uses its rows.
template <class T>
class RunPasses {
 public:
  RunPasses(PassTarget& target, const Problem& problem, const Weights& weights, const Arguments& a,
            Files& files, Progress& progress)
      : target_(target),
        arguments_(a),
        files_(files),
        progress_(progress),
        groups_(problem.size.g),
        scale_exponent_(weights.scale_exponent),
        width_(problem.size.z),
        passes_(passes_of(problem)),
        parts_(runtime::batch_parts(a.batch_size, width_)),
        shares_(target.shares()),
        s_(make_operand<T>(a.input, groups_ * weights.cols, a.batch_size, a.seed + 1)),
        q_grad_(
            make_operand<T>(a.output_gradient, groups_ * weights.rows, a.batch_size, a.seed + 2)) {
    if (Ranks* const all = ranks()) {
      all->require_same("matrix S", std::as_bytes(std::span(s_.elements())));
      all->require_same("matrix dQ", std::as_bytes(std::span(q_grad_.elements())));
    }
    if (!is_kept()) return;
    files.emplace_back("s.npy", io::write_npy(s()));
    if (passes_.size() > 1) files.emplace_back("q_gradient.npy", io::write_npy(q_grad()));
  }

  std::int64_t go() {
    for (; done_ < std::ssize(passes_) && !ends(); ++done_) {
      PassOutcome outcome{.pass = passes_[std::size_t(done_)]};
      progress_.set(to_string(outcome.pass), done_, std::ssize(passes_));
      outcome.is_finished = outcome.pass == Pass::GradW ? gradient(outcome) : product(outcome);
      const bool is_finished = outcome.is_finished;
      target_.take(std::move(outcome));
      if (!is_finished) break;
    }
    return done_;
  }

 private:
  MatrixView<const T> s() const { return s_.view(); }
  MatrixView<const T> q_grad() const { return q_grad_.view(); }

  // The first process stores results. A sample of the devices of a pod has none that are complete.
  bool is_kept() const { return !arguments_.output_dir.empty() && is_first_rank(); }
  bool has_results() const { return arguments_.devices_simulated == 0; }
  bool is_checked() const {
    return arguments_.stop == StopAfter::Checks && has_results() && !target_.is_over();
  }

  bool ends() const { return is_interrupted() || target_.is_over(); }

  // Returns true if one run takes the whole batch, whose columns are then not copied.
  bool is_one_run() const { return parts_.size() == 1 && parts_[0].size() == width_; }

  // Returns the columns of a run, which are copied to `copy` unless they are the whole batch.
  MatrixView<const T> columns(MatrixView<const T> whole, Range part, Matrix<T>& copy) const {
    if (is_one_run()) return whole;
    copy = runtime::batch_columns(whole, part, width_);
    return std::as_const(copy).view();
  }

  std::int64_t own_rows(Range GroupShare::* rows) const {
    std::int64_t count = 0;
    for (const GroupShare& share : shares_) count += (share.*rows).size();
    return count;
  }

  // Returns rows of a group in an operand of all groups.
  MatrixView<const T> rows_in(MatrixView<const T> whole, std::int64_t group, Range rows) const {
    return rows_of_group(whole, whole.rows / groups_, std::size_t(group))
        .sub(rows, {0, whole.cols});
  }

  // Returns this process's rows of an operand, which are copied to `copy` unless they are all.
  MatrixView<const T> own(MatrixView<const T> whole, Range GroupShare::* rows,
                          Matrix<T>& copy) const {
    if (own_rows(rows) == whole.rows) return whole;
    copy = Matrix<T>(own_rows(rows), whole.cols);
    auto to = copy.elements().begin();
    for (const GroupShare& share : shares_) {
      const MatrixView<const T> of_group = rows_in(whole, share.group, share.*rows);
      to = std::copy_n(of_group.data, of_group.rows * of_group.cols, to);
    }
    return std::as_const(copy).view();
  }

  layer::PassOptions options_of(Pass pass) {
    layer::PassOptions options{.stop = stop_.get_token()};
    options.progress = [this, pass](const verify::Progress& at) {
      progress_.set(fmt::format("{}, {}", to_string(pass), at.step), done_, std::ssize(passes_));
      if (ends()) stop_.request_stop();
    };
    return options;
  }

  // Runs a pass, which writes `results`, with the self-check and the fault that the arguments ask
  // for. Returns false if it was stopped.
  template <class Results>
  bool run(const layer::Operands& operands, const Results& results, PassOutcome& outcome) {
    const Pass pass = outcome.pass;
    layer::PassOptions options = options_of(pass);
    std::optional<device::Struck> struck;
    FaultOfRun fault;
    Results clean;
    if (arguments_.fault && arguments_.fault->pass == pass) {
      if (!target_.run(pass, operands, options, {})) return false;
      clean = results;
      fault = {&*arguments_.fault, &struck};
    }
    verify::Checksums checksums;
    const bool has_check = arguments_.self_check != SelfCheck::None;
    if (has_check) options.self_check = &checksums;
    options.repair = arguments_.self_check == SelfCheck::Repair;
    const bool is_finished = target_.run(pass, operands, options, fault);
    if (fault.request != nullptr) {
      outcome.fault = fault_note(arguments_, struck, !(results == clean));
      outcome.notes.push_back(outcome.fault);
    }
    if (!has_check) return is_finished;
    outcome.notes.push_back(self_check_note(pass, checksums));
    if (!outcome.self_check) outcome.self_check.emplace();
    verify::add_part(checksums, *outcome.self_check);
    return is_finished;
  }

  // Computes matrix * in for the whole batch, for the matrix of every group.
  bool product(PassOutcome& outcome) {
    const bool is_forward = outcome.pass == Pass::Fwd;
    const auto from = is_forward ? &GroupShare::inputs : &GroupShare::outputs;
    const auto to = is_forward ? &GroupShare::outputs : &GroupShare::inputs;
    const MatrixView<const T> whole_in = is_forward ? s() : q_grad();
    Matrix<T> own_in, out(own_rows(to), whole_in.cols);
    const MatrixView<const T> in = own(whole_in, from, own_in);
    for (const Range part : parts_) {
      Matrix<T> part_in, part_out;
      if (!is_one_run()) part_out = Matrix<T>(out.rows(), width_);
      Matrix<T>& result = is_one_run() ? out : part_out;
      const layer::Operands operands{
          .in = columns(in, part, part_in), .in_s = {}, .out = result.view(), .gradients = {}};
      if (!run(operands, result.elements(), outcome)) return false;
      if (!is_one_run()) runtime::put_columns(part_out, part, out.view());
    }
    const MatrixView<const T> result = std::as_const(out).view();
    if (is_checked()) outcome.verdict = target_.of_all(verdict(outcome.pass, to, whole_in, result));
    keep(outcome.pass, to, result);
    return true;
  }

  // Compares the results of this process.
  verify::Verdict verdict(Pass pass, Range GroupShare::* to, MatrixView<const T> in,
                          MatrixView<const T> out) const {
    verify::Verdict all;
    std::int64_t first = 0;
    for (const GroupShare& share : shares_) {
      const Range rows = share.*to, own{first, first + rows.size()};
      first = own.end;
      if (rows.size() == 0) continue;
      add_part_at(
          rows.begin, 0,
          verify::verify_product<T>(*target_.matrix(pass, share),
                                    rows_in(in, share.group, {0, in.rows / groups_}),
                                    out.sub(own, {0, out.cols}), target_.layer().rounding(pass)),
          all);
    }
    return all;
  }

  // Stores the results of all processes, on the first one.
  void keep(Pass pass, Range GroupShare::* to, MatrixView<const T> own) {
    if (arguments_.output_dir.empty() || !has_results()) return;
    Matrix<T> all;
    if (!target_.has_all()) {
      if (is_kept())
        all = Matrix<T>(to == &GroupShare::outputs ? q_grad().rows : s().rows, own.cols);
      target_.collect(to, own, all.view());
      own = std::as_const(all).view();
    }
    if (is_kept())
      files_.emplace_back(pass == Pass::Fwd ? "q.npy" : "s_gradient.npy",
                          result_file(pass, own, scale_exponent_));
  }

  // Each run returns the gradients of its part of the batch.
  bool gradient(PassOutcome& outcome) {
    Matrix<T> own_q_grad, own_s;
    const MatrixView<const T> all_q_grad = own(q_grad(), &GroupShare::outputs, own_q_grad);
    const MatrixView<const T> all_s = own(s(), &GroupShare::inputs, own_s);
    for (const Range part : parts_) {
      Matrix<T> part_q_grad, part_s;
      std::vector<float> values(std::size_t(target_.layer().values()));
      const layer::Operands operands{.in = columns(all_q_grad, part, part_q_grad),
                                     .in_s = columns(all_s, part, part_s),
                                     .out = {},
                                     .gradients = values};
      if (!run(operands, values, outcome)) return false;
      std::vector<sparse::Csr<float>> gradients = gradients_of(values);
      if (is_checked()) {
        if (!outcome.verdict) outcome.verdict.emplace();
        verify::add_part(target_.of_all(verdict(gradients, part)), *outcome.verdict);
      }
      // The gradients of several parts are not added up here, so none is stored.
      if (arguments_.output_dir.empty() || !has_results() || parts_.size() > 1) continue;
      gradients = target_.collect(std::move(gradients));
      if (is_kept()) keep_gradients(gradients, files_);
    }
    return true;
  }

  // Returns the gradients of each share, in whole blocks.
  std::vector<sparse::Csr<float>> gradients_of(std::span<const float> values) const {
    std::vector<sparse::Csr<float>> all;
    for (const GroupShare& share : shares_) {
      sparse::Csr<float>& gradient = all.emplace_back(target_.layer().weights(share.group));
      std::ranges::copy(values.first(gradient.values.size()), gradient.values.begin());
      values = values.subspan(gradient.values.size());
    }
    return all;
  }

  // Compares the gradients of this process for a part of the batch.
  verify::Verdict verdict(const std::vector<sparse::Csr<float>>& gradients, Range part) const {
    Matrix<T> part_q_grad, part_s;
    const MatrixView<const T> q_grads = columns(q_grad(), part, part_q_grad),
                              all_s = columns(s(), part, part_s);
    verify::Verdict all;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const GroupShare& share = shares_[i];
      const std::int64_t rows = share.rows.size(), cols = share.columns.size();
      if (rows == 0) continue;
      const bool is_padded = gradients[i].rows != rows || gradients[i].cols != cols;
      const auto cut = is_padded ? sparse::inside(gradients[i], rows, cols) : sparse::Csr<float>();
      add_part_at(share.rows.begin, share.columns.begin,
                  verify::verify_gradient<T>(*target_.matrix(Pass::GradW, share),
                                             is_padded ? cut : gradients[i],
                                             rows_in(q_grads, share.group, share.rows),
                                             rows_in(all_s, share.group, share.columns),
                                             target_.layer().rounding(Pass::GradW)),
                  all);
    }
    return all;
  }

  PassTarget& target_;
  const Arguments& arguments_;
  Files& files_;
  Progress& progress_;
  std::stop_source stop_;
  std::int64_t groups_;
  int scale_exponent_;
  std::int64_t width_, done_ = 0;  // columns of one run; passes that finished
  std::vector<Pass> passes_;
  std::vector<Range> parts_;
  std::vector<GroupShare> shares_;
  Matrix<T> s_, q_grad_;
};

}  // namespace

std::int64_t run_passes(PassTarget& target, const Problem& problem, const Weights& weights,
                        const Arguments& arguments, Files& files, Progress& progress) {
  return with_type(problem.data_type, [&]<class T>(T) {
    RunPasses<T> passes(target, problem, weights, arguments, files, progress);
    const EndsByItself passing;
    return passes.go();
  });
}

}  // namespace tessera::tools
