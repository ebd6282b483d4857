-- Shortest paths between all pairs, in two ways.
--
-- With (min, +) for (+, *), a product of matrices joins paths: from those of at most k edges it makes those of 2 k. It
-- is a contraction as any other, and `aplc explain shortest_paths.fut` shows that `join` is tiled: what matters is
-- where the indices stand, not which operators there are. Floyd and Warshall's steps are maps without a reduction to
-- tile.

-- ==
-- entry: by_products by_steps
-- "a ring with a short cut" input {
--   [[0, 3, 1000000, 7], [8, 0, 2, 1000000], [5, 1000000, 0, 1], [2, 1000000, 1000000, 0]] }
-- output { [[0, 3, 5, 6], [5, 0, 2, 3], [3, 6, 0, 1], [2, 5, 7, 0]] }
-- "unreachable" input { [[0, 1000000], [4, 0]] } output { [[0, 1000000], [4, 0]] }
-- input { empty([0][0]i32) } output { empty([0][0]i32) }

-- ==
-- entry: join
-- input { [[1, 5], [2, 0]] [[4, 1, 9], [0, 3, 2]] } output { [[5, 2, 7], [0, 3, 2]] }

entry join [m] [n] [q] (a: [m][q]i32) (b: [q][n]i32) : [m][n]i32 =
  map (\xs -> map (\ys -> i32.minimum (map2 (+) xs ys)) (transpose b)) a

-- Paths of at most 1, 2, 4, ... edges, until that is n.
entry by_products [n] (edges: [n][n]i32) : [n][n]i32 =
  let (paths, _) =
    loop (paths, length) = (edges, 1)
    while length < n do
      (join paths paths, 2 * length)
  in paths

-- Paths that pass through nodes 0 ... k only.
entry by_steps [n] (edges: [n][n]i32) : [n][n]i32 =
  loop paths = edges for k < n do
    tabulate_2d n n (\i j -> i32.min paths[i, j] (paths[i, k] + paths[k, j]))
