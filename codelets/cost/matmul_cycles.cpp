#include "tessera/codelets/cost/matmul_cycles.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/internal/method_cycles.hpp"

namespace tessera::codelets {

std::string to_string(Method method) {
  switch (method) {
    case Method::ElementFwd:
      return "ElementFwd";
    case Method::ElementGradA:
      return "ElementGradA";
    case Method::ElementTranspose:
      return "ElementTranspose";
    case Method::ElementGradW:
      return "ElementGradW";
    case Method::BlockFwd:
      return "BlockFwd";
    case Method::BlockTranspose:
      return "BlockTranspose";
    case Method::BlockGradW:
      return "BlockGradW";
    case Method::BlockGradWAmp:
      return "BlockGradWAmp";
  }
  assertion_failed("every method has a name", __FILE__, __LINE__);
}

namespace {

bool is_element(Method method) {
  return method == Method::ElementFwd || method == Method::ElementGradA ||
         method == Method::ElementTranspose || method == Method::ElementGradW;
}

void check(const MatMulKernel& kernel, std::int64_t z) {
  const bool fits = !is_element(kernel.method) || kernel.block.is_element();
  if (fits && z >= 0 && kernel.block.rows >= 1 && kernel.block.cols >= 1) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("no cycle formula for {} with block {}x{} and z {}; element methods take "
                          "block 1x1, z must be >= 0",
                          to_string(kernel.method), kernel.block.rows, kernel.block.cols, z));
}

}  // namespace

LinearCycles worker_cycles(const MatMulKernel& kernel, std::int64_t z) {
  check(kernel, z);
  switch (kernel.method) {
    case Method::ElementFwd:
    case Method::ElementGradA:
      return internal::element_worker(kernel, z);
    case Method::ElementTranspose:
      return internal::element_transpose_worker(kernel, z);
    case Method::ElementGradW:
      return internal::element_grad_w_worker(kernel, z);
    case Method::BlockFwd:
    case Method::BlockTranspose:
      return internal::block_worker(kernel, z);
    case Method::BlockGradW:
      return internal::block_grad_w_worker(kernel, z);
    case Method::BlockGradWAmp:
      return internal::block_grad_w_amp_worker(kernel, z);
  }
  assertion_failed("every method has a formula", __FILE__, __LINE__);
}

LinearCycles supervisor_load_cycles(const MatMulKernel& kernel, std::int64_t z) {
  check(kernel, z);
  switch (kernel.method) {
    case Method::BlockFwd:
    case Method::BlockTranspose:
      return internal::block_load(kernel);
    case Method::BlockGradWAmp:
      return internal::block_grad_w_amp_load(kernel, z);
    default:
      return {};
  }
}

ScanCycles scan_cycles(Method method) {
  // PopSparse does not price records that a GradW kernel passes over; here they cost as much as the
  // records in front of a match.
  constexpr ScanCycles kGradW = {75, 26, 26, 0};
  switch (method) {
    case Method::ElementFwd:
      return {30, 32, 47, 46};
    case Method::ElementGradA:
      return {30, 32, 46, 46};
    case Method::ElementTranspose:
      return {30, 32, 44, 68};
    case Method::BlockFwd:
    case Method::BlockTranspose:
      return {40, 33, 46, 56};
    case Method::ElementGradW:
    case Method::BlockGradW:
      return kGradW;
    // 23 cycles start the rearranged loop; 8 less because the first row needs no step to the next
    // one.
    case Method::BlockGradWAmp:
      return {kGradW.start + 23 - 8, 26, 26, 0};
  }
  assertion_failed("every method has a scan", __FILE__, __LINE__);
}

Cycles expected_scan_cycles(Method method, std::int64_t buckets, std::int64_t matching,
                            double records_per_bucket) {
  const ScanCycles scan = scan_cycles(method);
  const double position = (records_per_bucket + 1) / 2;
  const auto per_match = static_cast<std::int64_t>(
      static_cast<double>(scan.per_position) * position + static_cast<double>(scan.per_match));
  const auto passed =
      static_cast<std::int64_t>(static_cast<double>(buckets - matching) * records_per_bucket);
  return Cycles(scan.start + scan.per_record_passed * passed + matching * per_match);
}

}  // namespace tessera::codelets
