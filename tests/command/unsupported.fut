-- ==
-- input { 1 } output { 1 }

-- Recursion needs calls in generated code.
def f (x: i32) : i32 = if x < 2 then x else x * f (x - 1)
def main (x: i32) : i32 = f x
