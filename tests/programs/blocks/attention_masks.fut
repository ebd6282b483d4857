-- Attentions of batches and heads with masks (attention.fut).

def dot a b = f32.sum (map2 (*) a b)
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32.maximum xs
  let es = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum es
  in map (/ s) es
def matmul [n][m][p] (A: [n][m]f32) (B: [m][p]f32) : [n][p]f32 =
  map (\a -> map (\b -> dot a b) (transpose B)) A

-- Products of matrices with a softmax between, for each batch and head; a mask of truth values.
-- ==
-- entry: masked hidden
-- random input { [2][3][3][5]f32 [2][3][4][5]f32 [2][3][4][6]f32 [2][3][4]bool } auto output
-- random input { [1][2][6][5]f32 [1][2][67][5]f32 [1][2][67][6]f32 [1][6][67]bool } auto output
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

