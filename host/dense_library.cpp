#include "tessera/host/internal/dense_library.hpp"

#ifdef TESSERA_HAS_ONEDNN
#include <dnnl.h>
#include <omp.h>
#endif

#include "tessera/base/error.hpp"

namespace tessera::host::internal {

#ifdef TESSERA_HAS_ONEDNN

const char* dense_library() { return "oneDNN"; }

void multiply(const DenseProduct& p) {
  // The library must not start threads in addition to ours. The setting holds for this thread only.
  omp_set_num_threads(1);
  const dnnl_status_t status = dnnl_sgemm('N', p.b_is_transposed ? 'T' : 'N', p.m, p.n, p.k, 1, p.a,
                                          p.lda, p.b, p.ldb, p.adds ? 1 : 0, p.c, p.ldc);
  TESSERA_ASSERT(status == dnnl_success);
}

#else

const char* dense_library() { return nullptr; }

void multiply(const DenseProduct&) { TESSERA_ASSERT(dense_library() != nullptr); }

#endif

}  // namespace tessera::host::internal
