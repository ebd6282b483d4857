-- ==
-- "quick" input { 5 } output { 5 }
-- "endless" input { 200 } output { 200 }

def main (x: i32) : i32 = loop y = 0 while y != x do (y + 1) % 100
