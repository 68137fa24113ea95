"""docs/site/comments.py turns our plain comments into doxygen's."""

import importlib.util
import unittest

import project

spec = importlib.util.spec_from_file_location("comments", project.ROOT / "docs/site/comments.py")
comments = importlib.util.module_from_spec(spec)
spec.loader.exec_module(comments)

HEADER = """#pragma once

// About the file.

namespace hmc {

// A class,
// in two lines about <id>.
class A {
 public:
  int a = 0;  // behind it,
              // and below
  int b;      // NOLINT(name)
  /// Marked already.
  int c;

 private:
  int d;  // nobody's business
};

}  // namespace hmc
"""
MARKED = r"""#pragma once

/// \file
/// About the file.



/// A class,
/// in two lines about \<id>.
class A {
 public:
  int a = 0;  ///< behind it,
              ///< and below
  int b;
  /// Marked already.
  int c;

};


"""
C_HEADER = """#ifndef A_H
#define A_H

/*
 * About the file.
 */

/* A function. */
int a(void);
#define B 1 /* behind it */
#endif
"""
C_MARKED = r"""#ifndef A_H
#define A_H

/** \file

 * About the file.
 */

/** A function. */
int a(void);
#define B 1 /**< behind it */
#endif
"""


class Comments(unittest.TestCase):
    maxDiff = None

    def test_of_a_header_become_documentation(self):
        self.assertEqual(MARKED, comments.documented(HEADER))

    def test_of_c_too(self):
        self.assertEqual(C_MARKED, comments.documented(C_HEADER))


if __name__ == "__main__":
    unittest.main()
