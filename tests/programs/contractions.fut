-- Contractions whose tiled kernels do more than multiply and add: code before and after, indices, several results.

entry epilogue [m][n][q] (A: [m][q]f32) (B: [q][n]f32) (bias: [n]f32) (C: [m][n]f32): [m][n]f32 =
  map3 (\row crow i ->
          map4 (\col b c j ->
                  let s = f32.sum (map2 (*) row col) * 2 + b + c
                  in if j <= i then f32.max 0 s else -1)
               (transpose B) bias crow (iota n))
       A C (iota m)

entry epilogue_of_a_tensor [a][b][c][q] (X: [a][q][c]f32) (Y: [q][b]f32) (D: [c][b][a]f32): [c][b][a]f32 =
  tabulate_3d c b a (\i j k -> f32.sum (tabulate q (\l -> X[k, l, i] * Y[l, j])) - D[i, j, k])

def nearer (a: f32, i: i64) (b: f32, j: i64): (f32, i64) =
  if a < b || (a == b && i < j) then (a, i) else (b, j)

entry nearest [m][n][q] (A: [m][q]f32) (B: [n][q]f32): [m][n]i32 =
  map (\row -> map (\col ->
    i32.i64 (reduce_comm nearer (f32.inf, -1) (zip (map2 (\x y -> f32.abs (x - y)) row col) (iota q))).1) B) A

entry banded [m][n][q] (A: [m][q]f32) (B: [q][n]f32): [m][n]f32 =
  tabulate_2d m n (\i j -> f32.sum (tabulate q (\k -> if k <= i + j then A[i, k] * B[k, j] else 0)))

entry complex [m][n][q] (Ar: [m][q]f32) (Ai: [m][q]f32) (Br: [q][n]f32) (Bi: [q][n]f32): ([m][n]f32, [m][n]f32) =
  let C = map2 (\ar ai ->
    map2 (\br bi ->
      reduce_comm (\(a, b) (c, d) -> (a + c, b + d)) (0, 0)
                  (map4 (\x y z w -> (x * z - y * w, x * w + y * z)) ar ai br bi))
         (transpose Br) (transpose Bi)) Ar Ai
  in (map (map (.0)) C, map (map (.1)) C)

entry weighted [b][m][n][q] (A: [b][m][q]f32) (B: [b][q][n]f32) (ws: [q]f32) (s: [b]f32): [b][m][n]f32 =
  map3 (\a b t ->
          map (\row -> map (\col -> f32.sum (map3 (\x y w -> t * x * y * w) row col ws)) (transpose b)) a)
       A B s

entry sum_and_largest [m][n][q] (A: [m][q]f32) (B: [q][n]f32): ([m][n]f32, [m][n]f32) =
  let C = map (\row -> map (\col -> let ps = map2 (*) row col in (f32.sum ps, f32.maximum ps)) (transpose B)) A
  in (map (map (.0)) C, map (map (.1)) C)

entry bytes [m][n][q] (A: [m][q]i8) (B: [q][n]i8) (s: [n]i32): [m][n]i32 =
  map (\row -> map2 (\col t -> t * i32.sum (map2 (\x y -> i32.i8 x * i32.i8 y) row col)) (transpose B) s) A

entry squared_before [m][n][q] (A: [m][q]f32) (B: [q][n]f32) (s: [m]f32): [m][n]f32 =
  tabulate_2d m n (\i j -> let f = s[i] * s[i] - 1 in f32.sum (tabulate q (\k -> f * A[i, k] * B[k, j])))

entry scaled_bytes [b][m][n][q] (A: [b][m][q]u8) (B: [b][q][n]i8) (s: [b]i32) (t: i32): [b][m][n]i32 =
  map3 (\a b f ->
          map (\row -> map (\col -> 1 + i32.sum (map2 (\x y -> f * i32.u8 x * i32.i8 y * t) row col)) (transpose b)) a)
       A B s
