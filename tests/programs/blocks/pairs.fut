-- All pairs: on GPUs distances are made in tiles and folded at once, where there are indices enough; few indices share out
-- each one's pairs.

-- ==
-- entry: forces
-- random input { [3]f32 [3]f32 [3]f32 } auto output
-- random input { [4131]f32 [4131]f32 [4131]f32 } auto output
entry forces [n] (xs: [n]f32) (ys: [n]f32) (ms: [n]f32) : ([n]f32, [n]f32) =
  unzip (map2 (\x y ->
    let one x2 y2 m =
      let (dx, dy) = (x2 - x, y2 - y)
      let inverse = f32.rsqrt (dx * dx + dy * dy + 0.01)
      let s = m * inverse * inverse * inverse
      in (s * dx, s * dy)
    in reduce_comm (\(a, b) (c, d) -> (a + c, b + d)) (0, 0) (map3 one xs ys ms)) xs ys)

-- The contraction inside goes through its own tiles: depths that these do not divide, and none at all.
-- ==
-- entry: distances nearest
-- random input { [2][3]f32 [5][3]f32 } auto output
-- random input { [4097][3]f32 [131][3]f32 } auto output
-- random input { [4100][17]f32 [128][17]f32 } auto output
-- random input { [4100][0]f32 [128][0]f32 } auto output
entry distances [n][m][d] (xs: [n][d]f32) (ys: [m][d]f32) : [n]f32 =
  map (\x -> f32.sum (map (\y -> f32.sqrt (f32.sum (map2 (\a b -> (a - b) * (a - b)) x y))) ys)) xs
entry nearest [n][m][d] (xs: [n][d]f32) (ys: [m][d]f32) : [n]i64 =
  map (\x ->
    let closer (a, i) (b, j) = if a < b || (a == b && i < j) then (a, i) else (b, j)
    let squares y = i32.sum (map2 (\a b -> let c = i32.f32 (8 * a) - i32.f32 (8 * b) in c * c) x y)
    in (reduce_comm closer (i32.highest, i64.highest) (zip (map squares ys) (iota m))).1) xs

-- Groups of their own: the outer index has blocks of its own, and so have weights that belong to it.
-- ==
-- entry: in_groups
-- random input { [2][3]i32 [2][4]i32 [2]i32 } auto output
-- random input { [65][5]i32 [65][130]i32 [65]i32 } auto output
entry in_groups [g][n][m] (xss: [g][n]i32) (yss: [g][m]i32) (ws: [g]i32) : [g][n]i32 =
  map3 (\xs ys w -> map (\x -> i32.sum (map (\y -> if y < x then w * (x - y) else y) ys) + x) xs) xss yss ws
