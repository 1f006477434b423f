#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tessera/tests/support/shared_data.hpp"
#include "tessera/train/data/idx.hpp"

namespace tessera::test {

// Returns Fashion-MNIST as Debian's package installs it, read once; empty without the package.
inline const std::optional<train::DataSet>& fashion_mnist() {
  static const std::optional<train::DataSet> data = [] {
    std::error_code ignored;
    return std::filesystem::is_directory("/usr/share/datasets/fashion-mnist", ignored)
               ? std::optional(train::read_fashion_mnist())
               : std::nullopt;
  }();
  return data;
}

}  // namespace tessera::test

// Defines `variable`, the data set, for the rest of the test. Without the package the test fails
// under CI and is skipped with a message elsewhere.
#define TESSERA_NEED_FASHION_MNIST(variable)                                         \
  if (!::tessera::test::fashion_mnist() && ::tessera::test::in_ci())                 \
    FAIL() << "Debian's package dataset-fashion-mnist is missing";                   \
  if (!::tessera::test::fashion_mnist())                                             \
    GTEST_SKIP() << "Debian's package dataset-fashion-mnist is missing: install it"; \
  const ::tessera::train::DataSet& variable = *::tessera::test::fashion_mnist()
