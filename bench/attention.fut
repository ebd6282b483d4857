-- Attention as programs write it (bench/attention.py).

def dot a b = f32.sum (map2 (*) a b)
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32.maximum xs
  let es = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum es
  in map (/ s) es
def matmul [n][m][p] (A: [n][m]f32) (B: [m][p]f32) : [n][p]f32 =
  map (\a -> map (\b -> dot a b) (transpose B)) A

-- Heads of maps over rows.
entry maps [h][n][m][d][e] (Q: [h][n][d]f32) (K: [h][m][d]f32) (V: [h][m][e]f32) : [h][n][e]f32 =
  map3 (\q k v ->
    let s = map (\x -> map (\y -> dot x y / f32.sqrt (f32.i64 d)) k) q
    let p = map softmax s
    in map (\r -> map (\c -> dot r c) (transpose v)) p) Q K V

-- One head by indices, causal, without a maximum.
entry tabulated [n][d] (Q: [n][d]f32) (K: [n][d]f32) (V: [n][d]f32) : [n][d]f32 =
  let s = tabulate_2d n n (\i j -> if j <= i then f32.sum (tabulate d (\k -> Q[i, k] * K[j, k])) * 0.125 else -f32.inf)
  let e = map (map f32.exp) s
  let t = map f32.sum e
  in tabulate_2d n d (\i c -> f32.sum (tabulate n (\j -> e[i, j] * V[j, c])) / t[i])

-- Products of matrices with a softmax between, for each batch and head; a mask of truth values.
entry masked [b][h][n][m][d][e] (Q: [b][h][n][d]f32) (K: [b][h][m][d]f32) (V: [b][h][m][e]f32) (mask: [b][n][m]bool)
    : [b][h][n][e]f32 =
  map4 (\q k v ms ->
    map3 (\q k v ->
      let s = matmul q (transpose k)
      let s = map2 (map2 (\x ok -> if ok then x * 0.125 else -1e9)) s ms
      in matmul (map softmax s) v) q k v) Q K V mask

-- A query at a time, divided by the sum behind.
def attend [m][d][e] (K: [m][d]f32) (V: [m][e]f32) (q: [d]f32) : [e]f32 =
  let s = map (\k -> dot q k / f32.sqrt (f32.i64 d)) K
  let most = f32.maximum s
  let w = map (\x -> f32.exp (x - most)) s
  in map (\v -> dot w v / f32.sum w) (transpose V)
entry queries [h][n][m][d][e] (Q: [h][n][d]f32) (K: [h][m][d]f32) (V: [h][m][e]f32) : [h][n][e]f32 =
  map3 (\q k v -> map (attend k v) q) Q K V

-- The rows of V are weighted and summed; causal by index, and a bias.
entry rows [n][d] (Q: [n][d]f32) (K: [n][d]f32) (V: [n][d]f32) (bias: [n][n]f32) : [n][d]f32 =
  let scale = 1 / f32.sqrt (f32.i64 d)
  in map3 (\q i b ->
    let s = map3 (\k j x -> if j > i then f32.lowest else scale * dot q k + x) K (iota n) b
    let p = softmax s
    in reduce (map2 (+)) (replicate d 0) (map2 (\w v -> map (* w) v) p V)) Q (iota n) bias
