-- Attentions a query at a time (attention.fut).

def dot a b = f32.sum (map2 (*) a b)
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32.maximum xs
  let es = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum es
  in map (/ s) es

-- A query at a time, divided by the sum behind.
def attend [m][d][e] (K: [m][d]f32) (V: [m][e]f32) (q: [d]f32) : [e]f32 =
  let s = map (dot q) K
  let most = f32.maximum s
  let w = map (\x -> f32.exp (x - most)) s
  in map (\v -> dot w v / f32.sum w) (transpose V)
-- ==
-- entry: queries
-- random input { [32][3][4]f32 [32][5][4]f32 [32][5][6]f32 } auto output
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
