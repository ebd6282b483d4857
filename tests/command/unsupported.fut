-- ==
-- input { 1 } output { 1 }

module m = { def one = 1i32 }
def main (x: i32) : i32 = x * m.one
