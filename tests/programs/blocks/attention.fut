-- Attentions, written differently: on GPUs each is one kernel that rescales its sums as the maximum of the scores grows,
-- where there are queries enough: here a block is, as the tuning file beside says.

def dot a b = f32.sum (map2 (*) a b)
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32.maximum xs
  let es = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum es
  in map (/ s) es

-- Heads of maps over rows; scores grow from tile to tile.
-- ==
-- entry: maps steep
-- random input { [1][1][1]f32 [1][1][1]f32 [1][1][1]f32 } auto output
-- random input { [2][9][9]f32 [2][70][9]f32 [2][70][67]f32 } auto output
-- random input { [1][130][66]f32 [1][65][66]f32 [1][65][3]f32 } auto output
-- random input { [2][3][129]f32 [2][4][129]f32 [2][4][5]f32 } auto output
-- random input { [2][0][3]f32 [2][4][3]f32 [2][4][5]f32 } auto output
entry maps [h][n][m][d][e] (Q: [h][n][d]f32) (K: [h][m][d]f32) (V: [h][m][e]f32) : [h][n][e]f32 =
  map3 (\q k v ->
    let s = map (\x -> map (\y -> dot x y / f32.sqrt (f32.i64 d)) k) q
    let p = map softmax s
    in map (\r -> map (\c -> dot r c) (transpose v)) p) Q K V

entry steep [h][n][m][d][e] (Q: [h][n][d]f32) (K: [h][m][d]f32) (V: [h][m][e]f32) : [h][n][e]f32 =
  map3 (\q k v ->
    let s = map (\x -> map2 (\y j -> dot x y + f32.i64 j * 3) k (iota m)) q
    let p = map softmax s
    in map (\r -> map (\c -> dot r c) (transpose v)) p) Q K V

-- By indices, causal, without a maximum.
-- ==
-- entry: tabulated
-- random input { [3][2]f32 [3][2]f32 [3][2]f32 } auto output
-- random input { [130][5]f32 [130][5]f32 [130][5]f32 } auto output
entry tabulated [n][d] (Q: [n][d]f32) (K: [n][d]f32) (V: [n][d]f32) : [n][d]f32 =
  let s = tabulate_2d n n (\i j -> if j <= i then f32.sum (tabulate d (\k -> Q[i, k] * K[j, k])) * 0.125 else -f32.inf)
  let e = map (map f32.exp) s
  let t = map f32.sum e
  in tabulate_2d n d (\i c -> f32.sum (tabulate n (\j -> e[i, j] * V[j, c])) / t[i])

