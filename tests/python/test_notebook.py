"""The cells of examples/notebook one after the other, and what they show."""

import ast
import json
import os
import sys
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../examples/notebook")


class Notebook(unittest.TestCase):
    def test_cells(self):
        with open(os.path.join(FOLDER, "contraction.ipynb"), encoding="utf-8") as file:
            notebook = json.load(file)
        names, shown = {}, []
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            self.assertEqual(cell["outputs"], [])
            body = ast.parse("".join(cell["source"]))
            last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
            exec(compile(body, "cell", "exec"), names)
            if last is not None:
                shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
        explained, page, remarks, product, counted = shown
        self.assertIn("packed for a micro-kernel", explained._repr_html_())
        self.assertIn("srcdoc", page._repr_html_())
        self.assertTrue(remarks)
        self.assertIsNone(product)
        self.assertEqual(len(counted), 1)


if __name__ == "__main__":
    try:
        import scipy  # noqa: F401
    except ImportError:
        print("scipy is not here")
        sys.exit(77)
    unittest.main()
