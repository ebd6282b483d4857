-- k-means: points go to their nearest centre, centres to the mean of their points.
--
-- `hist` adds up what has the same index. Here rows are added, by `map2 (+)`: an operator may work on arrays, though
-- that costs (`aplc explain kmeans.fut`: `runs in one thread`). Indices out of bounds are left out, which is how points
-- without any centre (k = 0) vanish.

-- ==
-- entry: kmeans
-- "two clusters" input { 2 [[0, 0], [10, 10]] [[1, 2], [3, 2], [2, 5], [20, 20], [22, 24]] }
-- output { [[2, 3], [21, 22]] [0i64, 0i64, 0i64, 1i64, 1i64] }
-- "a centre without points stays" input { 1 [[0], [100]] [[4], [6]] } output { [[5], [100]] [0i64, 0i64] }
-- "no rounds" input { 0 [[7], [1]] [[4]] } output { [[7], [1]] [0i64] }

def distance [d] (a: [d]i32) (b: [d]i32) : i32 =
  i32.sum (map2 (\x y -> (x - y) * (x - y)) a b)

-- Of equal distances that to the first centre: such an operator may be carried out in any order.
def nearest [k] [d] (centres: [k][d]i32) (point: [d]i32) : i64 =
  let closer (a, i) (b, j) = if a < b || (a == b && i < j) then (a, i) else (b, j)
  in (reduce_comm closer (i32.highest, k) (zip (map (distance point) centres) (iota k))).1

def improve [k] [n] [d] (points: [n][d]i32) (centres: [k][d]i32) : [k][d]i32 =
  let is = map (nearest centres) points
  let counts = hist (+) 0 k is (replicate n 1)
  let totals = hist (map2 (+)) (replicate d 0) k is points
  in map3 (\old count total -> if count == 0 then old else map (/ count) total) centres counts totals

entry kmeans [k] [n] [d] (rounds: i32) (centres: [k][d]i32) (points: [n][d]i32) : ([k][d]i32, [n]i64) =
  let centres = loop cs = centres for _i < rounds do improve points cs
  in (centres, map (nearest centres) points)
