-- Rows that are too long to be held.
-- ARGS: --size m=1000 --size n=10000
-- SHOWS: 7 let total = f32.sum es +reduction +one kernel, shared by 256 threads; rows too long to be held .main.together.rows.
def softmax [n] (xs: [n]f32) : [n]f32 =
  let largest = f32.maximum xs
  let es = map (\x -> f32.exp (x - largest)) xs
  let total = f32.sum es
  in map (/ total) es
entry main [m][n] (A: [m][n]f32) : [m][n]f32 = map softmax A
