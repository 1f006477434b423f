"""Tests of mutate.py: which lines it changes, and how."""

import random
import unittest

import mutate


class Changes(unittest.TestCase):
    """The changes of one line."""

    def texts(self, line, previous="{"):
        """Return the changed lines without their kinds."""
        return [text for _, text in mutate.changes_of(line, previous)]

    def test_replace_comparisons_but_no_template_brackets(self):
        """Angle brackets without blanks are no comparison."""
        self.assertIn("  if (a <= b) {", self.texts("  if (a < b) {"))
        self.assertEqual([], self.texts("  std::vector<Tile> tiles;"))

    def test_leave_text_and_comments_alone(self):
        """Neither a literal nor a comment is code."""
        self.assertEqual(["  ;"], self.texts('  say("a < b, 3 of 4");  // 1 + 2'))
        self.assertEqual([], self.texts("  x;  // 1 + 2"))
        self.assertEqual([], self.texts("  // a < b"))

    def test_leave_tables_in_text_alone(self):
        """A literal of several lines may hold figures, which are data."""
        lines = ["  a = 1;", '  table = R"([', "    [1, 2 + 3],", '  ])";', "  b = 1;", '  c = f(R"(1)", 2);']
        self.assertEqual([0, 4, 5], mutate.places_of(lines))

    def test_leave_hints_alone(self):
        """Nobody sees how much memory was reserved or fetched before it was needed."""
        self.assertEqual([], self.texts("  places.row_begin.reserve(rows + 1);"))
        self.assertEqual([], self.texts("  if (count > few) many_->reserve(count);"))
        self.assertEqual([], self.texts("  __builtin_prefetch(values + 8);"))
        self.assertEqual([], self.texts("  hwy::Prefetch(from + 8);"))
        lines = ["  a = 1;", "  found[i].reserve(", "      rows + 1);", "  reserved = 2;"]
        self.assertEqual([0, 3], mutate.places_of(lines))

    def test_change_assertions_but_keep_them(self):
        """A wrong one fails; one that is gone is seen by nobody while the code is right."""
        self.assertEqual(["  TESSERA_ASSERT(a != b);"], self.texts("  TESSERA_ASSERT(a == b);"))

    def test_change_constants_by_one(self):
        """Both neighbours of a whole number are tried; parts of names and fractions are not."""
        self.assertEqual(["  return 5;", "  return 3;"], self.texts("  return 4;"))
        self.assertEqual([], self.texts("  return x4(2.5, 7.25e+10);"))

    def test_drop_whole_statements_only(self):
        """A line that continues another one is not dropped."""
        self.assertIn("  ;", self.texts("  total = next;"))
        self.assertNotIn("      ;", self.texts("      total = next;", previous="  call(a,"))

    def test_are_the_same_for_the_same_seed(self):
        """A seed that is printed leads to the same changes again."""
        files = {"f": ["int f(int a) {", "  return a + 4;", "}"]}
        self.assertEqual(mutate.draw(random.Random(3), files), mutate.draw(random.Random(3), files))


class Tests(unittest.TestCase):
    """The order in which tests run, and the programs they belong to."""

    def test_are_grouped_by_their_time(self):
        """Each group takes four times as long as the one before it."""
        times = {"Long": "1.2s", "Short": "0s", "Middle": "0.05s", "AlsoShort": "0.02s"}
        results = {"testsuites": [{"name": "S", "testsuite": [{"name": n, "time": t} for n, t in times.items()]}]}
        self.assertEqual([["S.Short", "S.AlsoShort"], ["S.Middle"], [], ["S.Long"]], mutate.tests_by_time(results))

    def test_are_those_of_all_programs_of_a_folder(self):
        """The planner has programs for networks and for static plans beside the first one."""
        names = [program.name for program in mutate.test_programs(mutate.ROOT, "planner")]
        self.assertIn("planner_tests", names)
        self.assertIn("static_plan_tests", names)
        self.assertIn("matmul_tests", names)


if __name__ == "__main__":
    unittest.main()
