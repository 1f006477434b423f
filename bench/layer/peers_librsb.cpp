#include <rsb.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "tessera/bench/layer/peers.hpp"

namespace tessera::bench {
namespace {

void require_success(rsb_err_t error, const char* what) {
  if (error != RSB_ERR_NO_ERROR)
    throw std::runtime_error(std::string("librsb: ") + what + " failed");
}

void start_on_one_thread() {
  require_success(rsb_lib_init(RSB_NULL_INIT_OPTIONS), "rsb_lib_init");
  const rsb_int_t one = 1;
  require_success(rsb_lib_set_opt(RSB_IO_WANT_EXECUTING_THREADS, &one), "rsb_lib_set_opt");
}

}  // namespace

// Blocks are passed as elements, because Debian's library has kernels for blocks of 1 x 1 only. The
// operands are row-major. The library partitions the matrix by its default, without tuning.
Product make_librsb(const PeerProblem& problem) {
  if (problem.batch_first) return {};
  [[maybe_unused]] static const bool started = (start_on_one_thread(), true);
  const sparse::Csr<float>& csr = problem.elements;
  const std::vector<rsb_coo_idx_t> row_begin(csr.row_begin.begin(), csr.row_begin.end());
  rsb_err_t error = RSB_ERR_NO_ERROR;
  const std::shared_ptr<rsb_mtx_t> r(
      rsb_mtx_alloc_from_csr_const(csr.values.data(), row_begin.data(), csr.col.data(),
                                   static_cast<rsb_nnz_idx_t>(csr.blocks()),
                                   RSB_NUMERICAL_TYPE_FLOAT, static_cast<rsb_coo_idx_t>(csr.rows),
                                   static_cast<rsb_coo_idx_t>(csr.cols), 1, 1, RSB_FLAG_NOFLAGS,
                                   &error),
      rsb_mtx_free);
  require_success(error, "rsb_mtx_alloc_from_csr_const");
  return [r, &s = problem.s](Matrix<float>& q) {
    const float one = 1, zero = 0;
    const auto z = static_cast<rsb_coo_idx_t>(s.cols());
    require_success(rsb_spmm(RSB_TRANSPOSITION_N, &one, r.get(), z, RSB_FLAG_WANT_ROW_MAJOR_ORDER,
                             s.elements().data(), z, &zero, q.elements().data(), z),
                    "rsb_spmm");
  };
}

}  // namespace tessera::bench
