-- Attentions, written differently: on GPUs each is one kernel that rescales its sums as the maximum of the scores grows,
-- where there are queries enough.

def dot a b = f32.sum (map2 (*) a b)
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32.maximum xs
  let es = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum es
  in map (/ s) es
def matmul [n][m][p] (A: [n][m]f32) (B: [m][p]f32) : [n][p]f32 =
  map (\a -> map (\b -> dot a b) (transpose B)) A

-- Heads of maps over rows; scores grow from tile to tile.
-- ==
-- entry: maps steep
-- random input { [1][1][1]f32 [1][1][1]f32 [1][1][1]f32 } auto output
-- random input { [33][5][3]f32 [33][7][3]f32 [33][7][2]f32 } auto output
-- random input { [32][9][9]f32 [32][70][9]f32 [32][70][67]f32 } auto output
-- random input { [32][2][66]f32 [32][130][66]f32 [32][130][3]f32 } auto output
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

-- Products of matrices with a softmax between, for each batch and head; a mask of truth values.
-- ==
-- entry: masked hidden
-- random input { [4][8][3][5]f32 [4][8][4][5]f32 [4][8][4][6]f32 [4][3][4]bool } auto output
-- random input { [2][16][6][5]f32 [2][16][67][5]f32 [2][16][67][6]f32 [2][6][67]bool } auto output
entry masked [b][h][n][m][d][e] (Q: [b][h][n][d]f32) (K: [b][h][m][d]f32) (V: [b][h][m][e]f32) (mask: [b][n][m]bool)
    : [b][h][n][e]f32 =
  map4 (\q k v ms ->
    map3 (\q k v ->
      let s = matmul q (transpose k)
      let s = map2 (map2 (\x ok -> if ok then x * 0.125 else -1e9)) s ms
      in matmul (map softmax s) v) q k v) Q K V mask

-- Keys that are hidden have no weight at all; a query that sees none gets 0.
entry hidden [b][h][n][m][d][e] (Q: [b][h][n][d]f32) (K: [b][h][m][d]f32) (V: [b][h][m][e]f32) (mask: [b][n][m]bool)
    : [b][h][n][e]f32 =
  map4 (\q k v ms ->
    map3 (\q k v ->
      let s = map2 (map2 (\x ok -> if ok then x else -f32.inf)) (matmul q (transpose k)) ms
      let o = matmul (map softmax s) v
      in map (map (\x -> if f32.isnan x then 0 else x)) o) q k v) Q K V mask

-- A query at a time, divided by the sum behind.
def attend [m][d][e] (K: [m][d]f32) (V: [m][e]f32) (q: [d]f32) : [e]f32 =
  let s = map (dot q) K
  let most = f32.maximum s
  let w = map (\x -> f32.exp (x - most)) s
  in map (\v -> dot w v / f32.sum w) (transpose V)
-- ==
-- entry: queries
-- random input { [32][3][4]f32 [32][5][4]f32 [32][5][6]f32 } auto output
-- random input { [1][4097][4]f32 [1][65][4]f32 [1][65][6]f32 } auto output
entry queries [h][n][m][d][e] (Q: [h][n][d]f32) (K: [h][m][d]f32) (V: [h][m][e]f32) : [h][n][e]f32 =
  map3 (\q k v -> map (attend k v) q) Q K V

-- The rows of V are weighted and summed; causal by index, and a bias.
-- ==
-- entry: rows
-- random input { [3][2]f32 [3][2]f32 [3][2]f32 [3][3]f32 } auto output
-- random input { [131][5]f32 [131][5]f32 [131][5]f32 [131][131]f32 } auto output
entry rows [n][d] (Q: [n][d]f32) (K: [n][d]f32) (V: [n][d]f32) (bias: [n][n]f32) : [n][d]f32 =
  let scale = 1 / f32.sqrt (f32.i64 d)
  in map3 (\q i b ->
    let s = map3 (\k j x -> if j > i then f32.lowest else scale * dot q k + x) K (iota n) b
    let p = softmax s
    in reduce (map2 (+)) (replicate d 0) (map2 (\w v -> map (* w) v) p V)) Q (iota n) bias
