-- The gradient of two layers of products, and a derivative along a change of the input. The values are central
-- differences of the loss, in rational numbers: where no sum is 0 they are exact, since the loss is a square in each weight.

def layer [n][k][m] (X: [n][k]f64) (W: [k][m]f64) (b: [m]f64) : [n][m]f64 =
  map (\x -> map2 (\w c -> f64.max 0 (f64.sum (map2 (*) x w) + c)) (transpose W) b) X

def squares [n][a][b][c] (X: [n][a]f64) (T: [n][c]f64) (W: [a][b]f64, v: [b]f64, U: [b][c]f64, u: [c]f64) : f64 =
  f64.sum (map2 (\r t -> f64.sum (map2 (\x y -> (x - y) * (x - y)) r t)) (layer (layer X W v) U u) T)

-- ==
-- entry: back
-- input { [[-1.0f64, -2.0f64], [1.0f64, -2.0f64], [4.0f64, 4.0f64]] [[4.0f64, 3.0f64, 0.0f64], [-2.0f64, 4.0f64,
--   -3.0f64]] [3.0f64, 0.0f64, 3.0f64] [[3.0f64, 3.0f64], [-3.0f64, 4.0f64], [1.0f64, 0.0f64]] [-3.0f64, 0.0f64]
--   [[-2.0f64, 2.0f64], [-3.0f64, -3.0f64], [-3.0f64, -3.0f64]] }
-- output { 25311.0f64 [[3876.0f64, 4736.0f64, 50.0f64], [2328.0f64, 4736.0f64, -236.0f64]] [1500.0f64, 1184.0f64,
--   118.0f64] [[1026.0f64, 4090.0f64], [0.0f64, 8288.0f64], [1062.0f64, 774.0f64]] [118.0f64, 382.0f64] }
-- input { [[3.0f64, -3.0f64, 0.0f64], [1.0f64, 4.0f64, -3.0f64]] [[1.0f64, -3.0f64], [1.0f64, 3.0f64], [-2.0f64,
--   -2.0f64]] [4.0f64, -2.0f64] [[0.0f64], [2.0f64]] [-2.0f64] [[-1.0f64], [2.0f64]] }
-- output { 485.0f64 [[0.0f64, 88.0f64], [0.0f64, 352.0f64], [0.0f64, -264.0f64]] [0.0f64, 88.0f64] [[660.0f64],
--   [572.0f64]] [44.0f64] }
entry back [n][a][b][c] (X: [n][a]f64) (W: [a][b]f64) (v: [b]f64) (U: [b][c]f64) (u: [c]f64) (T: [n][c]f64)
    : (f64, [a][b]f64, [b]f64, [b][c]f64, [c]f64) =
  let (y, (dW, dv, dU, du)) = vjp2 (squares X T) (W, v, U, u) 1
  in (y, dW, dv, dU, du)

-- ==
-- entry: along
-- input { [[-1.0f64, -2.0f64], [1.0f64, -2.0f64], [4.0f64, 4.0f64]] [[-1.0f64, 1.0f64], [0.0f64, -1.0f64], [1.0f64,
--   0.0f64]] [[4.0f64, 3.0f64, 0.0f64], [-2.0f64, 4.0f64, -3.0f64]] [3.0f64, 0.0f64, 3.0f64] [[3.0f64, 3.0f64],
--   [-3.0f64, 4.0f64], [1.0f64, 0.0f64]] [-3.0f64, 0.0f64] [[-2.0f64, 2.0f64], [-3.0f64, -3.0f64], [-3.0f64,
--   -3.0f64]] }
-- output { 7326.0f64 }
-- input { [[3.0f64, -3.0f64, 0.0f64], [1.0f64, 4.0f64, -3.0f64]] [[-1.0f64, 1.0f64, 0.0f64], [0.0f64, -1.0f64,
--   1.0f64]] [[1.0f64, -3.0f64], [1.0f64, 3.0f64], [-2.0f64, -2.0f64]] [4.0f64, -2.0f64] [[0.0f64], [2.0f64]]
--   [-2.0f64] [[-1.0f64], [2.0f64]] }
-- output { -440.0f64 }
entry along [n][a][b][c] (X: [n][a]f64) (D: [n][a]f64) (W: [a][b]f64) (v: [b]f64) (U: [b][c]f64) (u: [c]f64)
    (T: [n][c]f64) : f64 =
  jvp (\X -> squares X T (W, v, U, u)) X D

-- The gradient by hand, which has to be the same.
-- ==
-- entry: by_hand
-- input { [[-1.0f64, -2.0f64], [1.0f64, -2.0f64], [4.0f64, 4.0f64]] [[4.0f64, 3.0f64, 0.0f64], [-2.0f64, 4.0f64,
--   -3.0f64]] [3.0f64, 0.0f64, 3.0f64] [[3.0f64, 3.0f64], [-3.0f64, 4.0f64], [1.0f64, 0.0f64]] [-3.0f64, 0.0f64]
--   [[-2.0f64, 2.0f64], [-3.0f64, -3.0f64], [-3.0f64, -3.0f64]] }
-- output { true }
-- input { [[3.0f64, -3.0f64, 0.0f64], [1.0f64, 4.0f64, -3.0f64]] [[1.0f64, -3.0f64], [1.0f64, 3.0f64], [-2.0f64,
--   -2.0f64]] [4.0f64, -2.0f64] [[0.0f64], [2.0f64]] [-2.0f64] [[-1.0f64], [2.0f64]] }
-- output { true }
entry by_hand [n][a][b][c] (X: [n][a]f64) (W: [a][b]f64) (v: [b]f64) (U: [b][c]f64) (u: [c]f64) (T: [n][c]f64) : bool =
  let mm [p][q][r] (P: [p][q]f64) (Q: [q][r]f64) : [p][r]f64 =
    map (\x -> map (\y -> f64.sum (map2 (*) x y)) (transpose Q)) P
  let Z1 = map (map2 (+) v) (mm X W)
  let H = map (map (f64.max 0)) Z1
  let Z2 = map (map2 (+) u) (mm H U)
  let D2 = map2 (map2 (\z t -> if z <= 0 then 0 else 2 * (z - t))) Z2 T
  let D1 = map2 (map2 (\z d -> if z <= 0 then 0 else d)) Z1 (mm D2 (transpose U))
  let (dW, dv, dU, du) = vjp (squares X T) (W, v, U, u) 1
  let same [p] (xs: [p]f64) (ys: [p]f64) = and (map2 (==) xs ys)
  in and (map2 same dW (mm (transpose X) D1)) && same dv (map f64.sum (transpose D1)) &&
     and (map2 same dU (mm (transpose H) D2)) && same du (map f64.sum (transpose D2))
