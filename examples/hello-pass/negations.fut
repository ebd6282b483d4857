-- Something for the pass `hello`.
-- ==
-- entry: main
-- input { 5 } output { 5 }
entry main (x: i32) : i32 = -(-x)
