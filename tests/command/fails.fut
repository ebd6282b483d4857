-- Cases that fail, each for its reason.
-- ==
-- "wrong" input { 3 } output { 5 }
-- "no error" input { 3 } error: .
-- "argument" input { 3i64 } output { 4 }
-- "missing" input @ none.in output { 4 }
-- "right" input { 3 } output { 4 }

def main (x: i32) : i32 = x + 1
