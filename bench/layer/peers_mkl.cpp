#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/bench/layer/peers.hpp"

namespace tessera::bench {
namespace {

// The numbers of its interface with integers of 32 bits.
constexpr int kNotTransposed = 10, kRowMajor = 101, kColumnMajor = 102, kGeneral = 20, kFull = 40;
struct Description {
  int type = kGeneral, mode = kFull, diagonal = 50;
};
using Handle = void*;

// The functions that are called, from a library of that name if one can be opened. It is not a
// dependency: no header of it is included and nothing is linked.
struct Mkl {
  int (*create)(Handle*, int base, int rows, int cols, int* begin, int* end, int* col,
                float* values) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*hint_mm)(Handle, int op, Description, int layout, int columns, int calls) = nullptr;
  int (*hint_mv)(Handle, int op, Description, int calls) = nullptr;
  int (*optimize)(Handle) = nullptr;
  int (*mm)(int op, float alpha, Handle, Description, int layout, const float* in, int columns,
            int in_stride, float beta, float* out, int out_stride) = nullptr;
  int (*mv)(int op, float alpha, Handle, Description, const float* in, float beta,
            float* out) = nullptr;
  bool found = false;

  Mkl() {
    void* const library = dlopen("libmkl_rt.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto find = [&](auto& function, const char* name) {
      using Function = std::remove_reference_t<decltype(function)>;
      function = reinterpret_cast<Function>(dlsym(library, name));
      return function != nullptr;
    };
    int (*set_threads)(int) = nullptr;
    found = find(create, "mkl_sparse_s_create_csr") && find(destroy, "mkl_sparse_destroy") &&
            find(hint_mm, "mkl_sparse_set_mm_hint") && find(hint_mv, "mkl_sparse_set_mv_hint") &&
            find(optimize, "mkl_sparse_optimize") && find(mm, "mkl_sparse_s_mm") &&
            find(mv, "mkl_sparse_s_mv") && find(set_threads, "MKL_Set_Threading_Layer");
    constexpr int kSequential = 1;
    if (found) set_threads(kSequential);
  }
};

const Mkl& mkl() {
  static const Mkl library;
  return library;
}

void require_success(int status, const char* what) {
  if (status != 0)
    throw std::runtime_error(std::string(what) + " gave status " + std::to_string(status));
}

struct Matrix32 {
  std::vector<std::int32_t> row_begin, col;
  std::vector<float> values;
  Handle handle = nullptr;

  explicit Matrix32(const sparse::Csr<float>& csr)
      : row_begin(csr.row_begin.begin(), csr.row_begin.end()), col(csr.col), values(csr.values) {
    require_success(mkl().create(&handle, 0, int(csr.rows), int(csr.cols), row_begin.data(),
                                 row_begin.data() + 1, col.data(), values.data()),
                    "mkl_sparse_s_create_csr");
  }
  ~Matrix32() { mkl().destroy(handle); }
  Matrix32(const Matrix32&) = delete;
  Matrix32& operator=(const Matrix32&) = delete;
};

}  // namespace

// Elements with hints, optimised for a thousand calls, which are its fastest.
Product make_mkl(const PeerProblem& problem) {
  if (!mkl().found) return {};
  const auto r = std::make_shared<const Matrix32>(problem.elements);
  const int x = int(problem.layer.x), y = int(problem.layer.y), z = int(problem.layer.z);
  const int layout = problem.batch_first ? kColumnMajor : kRowMajor;
  const int in_stride = problem.batch_first ? y : z, out_stride = problem.batch_first ? x : z;
  constexpr int kCalls = 1000;
  if (z == 1)
    mkl().hint_mv(r->handle, kNotTransposed, {}, kCalls);
  else
    mkl().hint_mm(r->handle, kNotTransposed, {}, layout, z, kCalls);
  mkl().optimize(r->handle);
  return [=, &s = problem.s](Matrix<float>& q) {
    const float* in = s.elements().data();
    float* out = q.elements().data();
    require_success(z == 1 ? mkl().mv(kNotTransposed, 1, r->handle, {}, in, 0, out)
                           : mkl().mm(kNotTransposed, 1, r->handle, {}, layout, in, z, in_stride, 0,
                                      out, out_stride),
                    "mkl_sparse_s_mm");
  };
}

}  // namespace tessera::bench
