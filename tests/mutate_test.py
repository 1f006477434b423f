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

    def test_change_constants_by_one(self):
        """Both neighbours of a whole number are tried; parts of names and fractions are not."""
        self.assertEqual(["  return 5;", "  return 3;"], self.texts("  return 4;"))
        self.assertEqual([], self.texts("  return x4(2.5);"))

    def test_drop_whole_statements_only(self):
        """A line that continues another one is not dropped."""
        self.assertIn("  ;", self.texts("  total = next;"))
        self.assertNotIn("      ;", self.texts("      total = next;", previous="  call(a,"))

    def test_are_the_same_for_the_same_seed(self):
        """A seed that is printed leads to the same changes again."""
        files = {"f": ["int f(int a) {", "  return a + 4;", "}"]}
        self.assertEqual(mutate.draw(random.Random(3), files), mutate.draw(random.Random(3), files))


if __name__ == "__main__":
    unittest.main()
