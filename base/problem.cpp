#include "tessera/base/problem.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera {
namespace {

void check_size(const char* name, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= kLargestSize) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{} is {}; it must be in {}..{}", name, value, least, kLargestSize));
}

void check_types(const Problem& problem) {
  if (problem.partials_type == DataType::Float) return;
  if (problem.partials_type != DataType::Half || problem.data_type != DataType::Half)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("partials type is {} with data type {}; partials must be float, or half "
                    "with data type half",
                    to_string(problem.partials_type), to_string(problem.data_type)));
}

}  // namespace

void check_problem(const Problem& problem) {
  const Dims& size = problem.size;
  check_size("groups", size.g, 1);
  check_size("output size x", size.x, 1);
  check_size("input size y", size.y, 1);
  check_size("batch size z", size.z, 1);
  check_size("block rows", problem.block.rows, 1);
  check_size("block columns", problem.block.cols, 1);
  if (!(problem.density >= 0 && problem.density <= 1))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("density is {}; it must be in 0..1", problem.density));
  check_types(problem);
}

std::vector<Pass> passes_of(const Problem& problem) {
  std::vector<Pass> passes{Pass::Fwd};
  if (problem.grad_a) passes.push_back(Pass::GradA);
  if (problem.grad_w) passes.push_back(Pass::GradW);
  return passes;
}

std::string to_string(const Problem& problem) {
  return fmt::format("{}, block {}x{}, density {}, {} to {}, fwd{}{}", to_string(problem.size),
                     problem.block.rows, problem.block.cols, problem.density,
                     to_string(problem.data_type), to_string(problem.partials_type),
                     problem.grad_a ? " + grad_a" : "", problem.grad_w ? " + grad_w" : "");
}

}  // namespace tessera
