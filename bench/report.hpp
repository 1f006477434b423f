#pragma once

#include <string>

namespace tessera::bench {

// Prints one figure on each line, and records whether all bars were met.
class Report {
 public:
  void at_least(const std::string& name, double figure, double bar);
  void at_most(const std::string& name, double figure, double bar);
  // Prints a figure that has no bar.
  void tell(const std::string& name, double figure);
  bool all_met() const { return all_met_; }

 private:
  void add(const std::string& name, double figure, double bar, bool met, const char* sign);
  bool all_met_ = true;
};

constexpr double kMillion = 1e6;

}  // namespace tessera::bench
