-- Views of the rows of maps: merged heads before a product with a bias, split heads, windows and their reverse, pixels,
-- patches, slices that may be out of bounds.
-- ==
-- entry: merged_product
-- random input { [2][3][5][7]f32 [4][21]f32 [4]f32 [2][5][4]f32 } auto output
-- random input { [1][2][17][4]f32 [33][8]f32 [33]f32 [1][17][33]f32 } auto output
-- random input { [2][3][5][0]f32 [4][0]f32 [4]f32 [2][5][4]f32 } auto output
entry merged_product [b][h][n][e][m] (a: [b][h][n][e]f32) (w: [m][h*e]f32) (bias: [m]f32) (x: [b][n][m]f32): [b][n][m]f32 =
  let cat = map (\as -> map flatten (transpose as)) a
  in map2 (map2 (\xr r -> map3 (\v y z -> f32.sum (map2 (*) r v) + y + z) w bias xr)) x cat
-- ==
-- entry: split
-- random input { [2][5][21]i32 [3][7]i32 } auto output
-- random input { [1][3][0]i32 [0][7]i32 } auto output
entry split [b][n][h][e] (x: [b][n][h*e]i32) (_: [h][e]i32): [b][h][n][e]i32 =
  map (\z -> transpose (map unflatten z)) x
-- ==
-- entry: windows
-- random input { [2][6][8][3]f32 [2]i32 [3][4]i32 } auto output
-- random input { [1][7][7][1]f32 [7]i32 [1][1]i32 } auto output
entry windows [b][H][W][s][c] (x: [b][H*s][W*s][c]f32) (_: [s]i32) (_: [H][W]i32) =
  let parts = map (\image -> map transpose (map (map unflatten) (unflatten image))) x
  in (parts, map (\image -> flatten (map (\h -> map flatten (transpose h)) image)) parts)
-- ==
-- entry: pixels
-- random input { [2][12][3][5]i16 [3][2]i32 } auto output
-- random input { [1][9][4][1]i16 [1][3]i32 } auto output
entry pixels [n][c][h][w][r] (x: [n][c*(r*r)][h][w]i16) (_: [c][r]i32): [n][c][h*r][w*r]i16 =
  map (\image ->
         map (\ch -> flatten (map (map flatten) (transpose (map (\hw -> map transpose (transpose hw)) ch))))
             (map unflatten (unflatten image)))
      x
-- ==
-- entry: patches
-- input { 2i64 3i64 [[[1f32, 2f32, 3f32, 4f32], [5f32, 6f32, 7f32, 8f32], [9f32, 10f32, 11f32, 12f32]]] }
-- output { [[[1f32, 2f32, 3f32, 5f32, 6f32, 7f32], [2f32, 3f32, 4f32, 6f32, 7f32, 8f32]],
--           [[5f32, 6f32, 7f32, 9f32, 10f32, 11f32], [6f32, 7f32, 8f32, 10f32, 11f32, 12f32]]] }
-- input { 1i64 5i64 [[[1f32, 2f32]]] } error: out of bounds|size
entry patches [c][h][w] (kh: i64) (kw: i64) (x: [c][h][w]f32) =
  tabulate_2d (h - kh + 1) (w - kw + 1)
    (\i j -> flatten_3d (map (\ch -> map (\r -> r[j:j+kw] :> [kw]f32) (ch[i:i+kh] :> [kh][w]f32)) x))
-- ==
-- entry: slices
-- input { 2i64 [[1, 2, 3], [4, 5, 6]] } output { [[1, 2], [4, 5]] [[3], [6]] [[3, 1, 2], [6, 4, 5]] [[3, 2, 1], [6, 5, 4]] }
-- input { 0i64 [[1, 2, 3], [4, 5, 6]] }
-- output { empty([2][0]i32) [[1, 2, 3], [4, 5, 6]] [[1, 2, 3], [4, 5, 6]] [[3, 2, 1], [6, 5, 4]] }
-- input { 4i64 [[1, 2, 3], [4, 5, 6]] } error: out of bounds|size
-- input { 4i64 empty([0][5]i32) } output { empty([0][4]i32) empty([0][1]i32) empty([0][5]i32) empty([0][5]i32) }
entry slices [n][m] (k: i64) (x: [n][m]i32) = (map (take k) x, map (drop k) x, map (rotate k) x, map reverse x)
