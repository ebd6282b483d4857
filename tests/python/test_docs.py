"""Every block of Python in README.md and docs runs: those of a page one after the other, with the same names, in a folder
with the examples. A block that wants PyTorch or JAX is skipped by name where that is not here."""

import importlib.util
import os
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
OPTIONAL = ("torch", "jax")


def blocks(page):
    """How many lines are above each block, by which errors name the page's own lines, and its text."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M)
    return [(text[: match.start(1)].count("\n"), match[1]) for match in found]


class Docs(unittest.TestCase):
    def test_blocks(self):
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "examples" / "README.md"]
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        run, product = 0, None
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(ROOT / "examples", Path(folder) / "examples")
            os.chdir(folder)
            for page in pages:
                names = {}
                for above, block in blocks(page):
                    with self.subTest(page=page.name, line=above + 1):
                        for package in OPTIONAL:
                            if re.search(rf"\b{package}\b", block) and importlib.util.find_spec(package) is None:
                                self.skipTest(f"{package} is not here")
                        exec(compile("\n" * above + block, str(page), "exec"), names)
                        run += 1
                        product = names.get("product", product)
            os.chdir(before)
        self.assertGreaterEqual(run, 1)
        np.testing.assert_array_equal(product, np.ones((3, 2)))


if __name__ == "__main__":
    unittest.main()
