#include "tessera/bench/report.hpp"

#include <fmt/format.h>

namespace tessera::bench {

void Report::at_least(const std::string& name, double figure, double bar) {
  add(name, figure, bar, figure >= bar, ">=");
}

void Report::at_most(const std::string& name, double figure, double bar) {
  add(name, figure, bar, figure <= bar, "<=");
}

void Report::tell(const std::string& name, double figure) {
  fmt::print("{:<66}{:>9.2f}\n", name, figure);
}

void Report::add(const std::string& name, double figure, double bar, bool met, const char* sign) {
  fmt::print("{:<66}{:>9.2f}  {} {:>6.2f}  {}\n", name, figure, sign, bar, met ? "ok" : "short");
  std::fflush(stdout);
  all_met_ = all_met_ && met;
}

}  // namespace tessera::bench
