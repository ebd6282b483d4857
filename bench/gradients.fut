-- Gradients by vjp, each beside the adjoint written by hand (bench/gradients.py). Both entries of a pair have the same
-- arguments and results.

def mm [n][k][m] (X: [n][k]f32) (Y: [k][m]f32) : [n][m]f32 =
  map (\x -> map (\y -> f32.sum (map2 (*) x y)) (transpose Y)) X

-- A product, by its second factor.
entry vjp_product [n][k][m] (A: [n][k]f32) (B: [k][m]f32) (D: [n][m]f32) : [k][m]f32 = vjp (\B -> mm A B) B D
entry hand_product [n][k][m] (A: [n][k]f32) (_: [k][m]f32) (D: [n][m]f32) : [k][m]f32 = mm (transpose A) D

-- Two layers with biases and max(0, x), squared error.
def layer [n][k][m] (X: [n][k]f32) (W: [k][m]f32) (b: [m]f32) : [n][m]f32 =
  map (\x -> map2 (\w bias -> f32.max 0 (f32.sum (map2 (*) x w) + bias)) (transpose W) b) X
def squares [n][a][b][c] (X: [n][a]f32) (W: [a][b]f32) (v: [b]f32) (U: [b][c]f32) (u: [c]f32) (T: [n][c]f32) : f32 =
  f32.sum (map2 (\r t -> f32.sum (map2 (\x y -> (x - y) * (x - y)) r t)) (layer (layer X W v) U u) T)
entry vjp_layers [n][a][b][c] (X: [n][a]f32) (W: [a][b]f32) (v: [b]f32) (U: [b][c]f32) (u: [c]f32) (T: [n][c]f32)
    : ([a][b]f32, [b]f32, [b][c]f32, [c]f32) =
  vjp (\(W, v, U, u) -> squares X W v U u T) (W, v, U, u) 1
entry hand_layers [n][a][b][c] (X: [n][a]f32) (W: [a][b]f32) (v: [b]f32) (U: [b][c]f32) (u: [c]f32) (T: [n][c]f32)
    : ([a][b]f32, [b]f32, [b][c]f32, [c]f32) =
  let Z1 = map (map2 (+) v) (mm X W)
  let H = map (map (f32.max 0)) Z1
  let Z2 = map (map2 (+) u) (mm H U)
  let D2 = map2 (map2 (\z t -> if z <= 0 then 0 else 2 * (z - t))) Z2 T
  let D1 = map2 (map2 (\z d -> if z <= 0 then 0 else d)) Z1 (mm D2 (transpose U))
  in (mm (transpose X) D1, map f32.sum (transpose D1), mm (transpose H) D2, map f32.sum (transpose D2))

-- Logistic regression; labels are -1 and 1.
entry vjp_logistic [n][k] (X: [n][k]f32) (y: [n]f32) (w: [k]f32) : [k]f32 =
  vjp (\w -> f32.sum (map2 (\x y -> f32.log (1 + f32.exp (-y * f32.sum (map2 (*) x w)))) X y)) w 1
entry hand_logistic [n][k] (X: [n][k]f32) (y: [n]f32) (w: [k]f32) : [k]f32 =
  let d = map2 (\x y -> let e = f32.exp (-y * f32.sum (map2 (*) x w)) in -y * e / (1 + e)) X y
  in map (\column -> f32.sum (map2 (*) column d)) (transpose X)

-- Cross entropy of a softmax, for labels as rows of a matrix.
entry vjp_entropy [n][k][c] (X: [n][k]f32) (W: [k][c]f32) (T: [n][c]f32) : [k][c]f32 =
  vjp (\W -> f32.sum (map2 (\z t ->
    let m = f32.maximum z
    in m + f32.log (f32.sum (map (\x -> f32.exp (x - m)) z)) - f32.sum (map2 (*) z t)) (mm X W) T)) W 1
entry hand_entropy [n][k][c] (X: [n][k]f32) (W: [k][c]f32) (T: [n][c]f32) : [k][c]f32 =
  let D = map2 (\z t ->
    let m = f32.maximum z
    let e = map (\x -> f32.exp (x - m)) z
    let s = f32.sum e
    in map2 (\x y -> x / s - y) e t) (mm X W) T
  in mm (transpose X) D

-- Attention of one head, by queries, keys and values.
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32.maximum xs
  let e = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum e
  in map (/ s) e
def attend [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) : [n][d]f32 =
  mm (map (\r -> softmax (map (* 0.125) r)) (mm Q (transpose K))) V
entry vjp_attention [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) (D: [n][d]f32)
    : ([n][d]f32, [m][d]f32, [m][d]f32) =
  vjp (\(Q, K, V) -> attend Q K V) (Q, K, V) D
entry hand_attention [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][d]f32) (D: [n][d]f32)
    : ([n][d]f32, [m][d]f32, [m][d]f32) =
  let P = map (\r -> softmax (map (* 0.125) r)) (mm Q (transpose K))
  let dP = mm D (transpose V)
  let dS = map2 (\p d -> let s = f32.sum (map2 (*) p d) in map2 (\p d -> 0.125 * p * (d - s)) p d) P dP
  in (mm dS K, mm (transpose dS) Q, mm (transpose P) D)

-- The cost of k-means, by the centres.
def distance [d] (x: [d]f32) (c: [d]f32) : f32 = f32.sum (map2 (\a b -> (a - b) * (a - b)) x c)
entry vjp_kmeans [n][k][d] (X: [n][d]f32) (C: [k][d]f32) : [k][d]f32 =
  vjp (\C -> f32.sum (map (\x -> f32.minimum (map (distance x) C)) X)) C 1
entry hand_kmeans [n][k][d] (X: [n][d]f32) (C: [k][d]f32) : [k][d]f32 =
  let nearest x =
    (reduce_comm (\(i, a) (j, b) -> if a < b || (a == b && i < j) then (i, a) else (j, b)) (k, f32.inf)
                 (zip (iota k) (map (distance x) C))).0
  let is = map nearest X
  let counts = hist (+) 0 k is (replicate n 1f32)
  let sums = hist (map2 (+)) (replicate d 0) k is X
  in map3 (\c n s -> map2 (\c s -> 2 * (n * c - s)) c s) C counts sums
