-- Sums over rows of which one element is read: contractions, as those that go over elements.
def matmul [n] [k] [m] (A: [n][k]f32) (B: [k][m]f32): [n][m]f32 =
  map (\a -> map (\b -> f32.sum (map2 (*) a b)) (transpose B)) A

entry covariance [n] [m] (X: [n][m]f32): [m][m]f32 =
  tabulate_2d m m (\i j -> f32.sum (map (\row -> row[i] * row[j]) X))

entry batches [b] [n] [k] [m] (A: [b][k][n]i16) (B: [b][k][m]i16): [b][m][n]i16 =
  map2 (\A B -> tabulate_2d m n (\j i -> i16.sum (map2 (\x y -> x[i] * y[j] + y[j]) A B))) A B

-- Complex numbers are rows of two.
entry complex [n] [k] [m] (A: [n][k][2]f32) (B: [m][k][2]f32): [n][m](f32, f32) =
  map (\a -> map (\b -> reduce (\(x, y) (z, w) -> (x + z, y + w)) (0, 0)
                          (map2 (\p q -> (p[0] * q[0] - p[1] * q[1], p[0] * q[1] + p[1] * q[0])) a b)) B) A

entry by_second_factor [n] [k] [m] (A: [n][k]f32) (B: [k][m]f32) (D: [n][m]f32): [k][m]f32 =
  vjp (\B -> matmul A B) B D

def dense [n] [k] [m] (X: [n][k]i32) (W: [k][m]i32) (b: [m]i32): [n][m]i32 =
  map (\x -> map2 (\w b -> i32.max 0 (i32.sum (map2 (*) x w) + b)) (transpose W) b) X

entry by_all [n] [k] [m] (X: [n][k]i32) (W: [k][m]i32) (b: [m]i32) (D: [n][m]i32): ([n][k]i32, [k][m]i32, [m]i32) =
  vjp (\(X, W, b) -> dense X W b) (X, W, b) D
