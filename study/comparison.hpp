#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/planner/plan_json.hpp"
#include "tessera/study/tables.hpp"

namespace tessera::study {

// The figures by which two reports or plans are compared.
enum class ComparedBy { Cycles, Plan, Time };

// One side of a comparison: a report of a run, or a plan.
struct ComparedFile {
  std::string name;  // path, and the machine if the plan was priced again
  std::string machine = {};
  bool is_measured = false;                              // on this computer; else modelled
  bool is_plan = false;                                  // without a run
  std::vector<planner::PlannedLayer> plan = {};          // none for a measured report
  std::vector<std::pair<std::string, double>> run = {};  // figures of a run; none for a plan
  std::vector<std::pair<std::string, double>> times = {};
  std::vector<std::pair<std::string, std::string>> facts = {};  // of layer and machine
};

// Reads the text of a report or a plan; `name` is that of the file. Throws Error{BadInput} for any
// other text.
ComparedFile read_compared(const std::string& name, const std::string& text);

// Returns the plan of a file with its partition and methods priced on another machine. Throws
// Error{InvalidArgument} for a measured report and Error{NoSolution} if the plan does not fit the
// other machine.
ComparedFile priced_on(const ComparedFile& file, const std::string& machine);

// The figures of both sides.
class Comparison {
 public:
  Comparison(ComparedFile before, ComparedFile after);

  // Returns the largest growth of a total that counts, in percent: cycles and bytes or, of measured
  // reports and of two machines, time.
  double growth() const;

  // Returns the figures that differ, and the outcome for a limit on the growth in percent.
  std::string text(double threshold) const;

  // Returns all figures as tables and charts.
  Report report(double threshold) const;

 private:
  struct Line {
    std::string name;
    double before = 0, after = 0;
    double change() const;  // percent
  };

  bool is_across_machines() const { return before_.machine != after_.machine; }
  std::string outcome(double threshold) const;
  std::vector<Line> lines_in(const std::string& unit) const;

  ComparedFile before_, after_;
  ComparedBy by_;
  std::vector<Line> lines_;
};

}  // namespace tessera::study
