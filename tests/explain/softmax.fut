-- Several reductions of one row, which a team of threads holds.
-- ARGS: --size m=1000 --size n=1000
-- SHOWS: 9 entry main .*reduction of rows +rows of 1000 elements held by 256 threads each
def softmax [n] (xs: [n]f32) : [n]f32 =
  let largest = f32.maximum xs
  let es = map (\x -> f32.exp (x - largest)) xs
  let total = f32.sum es
  in map (/ total) es
entry main [m][n] (A: [m][n]f32) : [m][n]f32 = map softmax A
