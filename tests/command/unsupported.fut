-- ==
-- input { 1 } output { 1 }

-- A hole has no form where a function is wanted.
def f : i32 -> i32 = ???
def main (x: i32) : i32 = f x
