"""Runs the tests of the packages, and closes with a line as cargo's test runner does."""

import sys
import unittest

import test_chart
import test_image
import test_packages
import test_pods
import test_units

MODULES = (test_packages, test_units, test_image, test_chart, test_pods)


class Told(unittest.TextTestResult):
    """A line a test, with the reason where one is left out."""

    def getDescription(self, test):
        return test._testMethodName.removeprefix("test_").replace("_", " ")


def chosen(suite, names):
    """The tests whose names have one of these in them; all without names."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, names)
        elif not names or any(name in test.id() for name in names):
            yield test


def main():
    loader = unittest.TestLoader()
    every = [loader.loadTestsFromModule(module) for module in MODULES]
    tests = list(chosen(every, sys.argv[1:]))
    result = unittest.TextTestRunner(verbosity=2, resultclass=Told, stream=sys.stdout).run(unittest.TestSuite(tests))
    for test, reason in result.skipped:
        print(f"NOT CHECKED: {result.getDescription(test)}: {reason}")
    # What fails before the first test of a class counts as one.
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed - len(result.skipped)
    good = not failed and passed > 0
    print(f"test result: {'ok' if good else 'FAILED'}. {max(passed, 0)} passed; {failed} failed; {len(result.skipped)} ignored; 0 measured; "
          f"{sum(suite.countTestCases() for suite in every) - len(tests)} filtered out")
    sys.exit(not good)


if __name__ == "__main__":
    main()
