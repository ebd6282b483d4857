-- Attention of several heads, for the pairs of tokens that a sparse mask has: of all scores only these are computed.
--
-- `aplc explain attention.fut --device h200` says what is done by non-zeros: the scores with the exponential behind them (an SDDMM), their
-- sums, and the product with the values (an SpMM). On a GPU both products are the runtime's kernels, one call a head.
-- That needs a proof that a pair without a mask has no part in anything: `0 * x` is 0, and a branch on `a == 0` is
-- decided. No matrix of all pairs is ever made.

-- ==
-- entry: weighted stable
-- script input { (band 200i64 9i64, noise 3i64 200i64 16i64 1f32, noise 3i64 200i64 16i64 2f32,
--                 noise 3i64 200i64 24i64 3f32) } auto output
-- script input { (band 1i64 9i64, noise 1i64 1i64 2i64 1f32, noise 1i64 1i64 2i64 2f32, noise 1i64 1i64 1i64 3f32) }
-- auto output

-- Neighbours of a token, and every seventh one before it; near ones count more.
entry band (n: i64) (width: i64) : [n][n]f32 =
  tabulate_2d n n (\i j -> if i64.abs (i - j) < width || (j < i && j % 7 == 0)
                          then 1 / (1 + f32.i64 (i64.abs (i - j)))
                          else 0)

entry noise (h: i64) (n: i64) (d: i64) (seed: f32) : [h][n][d]f32 =
  tabulate_3d h n d (\a b c -> f32.sin (seed * f32.i64 (37 * a + 11 * b + 3 * c)))

-- A token that sees nobody gets nothing.
def average (total: f32) (sum: f32): f32 = if total == 0 then 0 else sum / total

-- The scores' exponentials, each times its element of the mask; rows are divided by their sums at the end, where there
-- are fewer numbers.
#[sparse(mask)]
entry weighted [n] [m] [h] [d] [e] (mask: [n][m]f32) (queries: [h][n][d]f32) (keys: [h][m][d]f32)
                                   (values: [h][m][e]f32) : [h][n][e]f32 =
  let scale = 1 / f32.sqrt (f32.i64 (i64.max 1 d))
  in map3 (\qs ks vs ->
             let weights =
               map2 (\row q -> map2 (\a k -> a * f32.exp (scale * f32.sum (map2 (*) q k))) row ks) mask qs
             in map2 (\ws total -> map (\v -> average total (f32.sum (map2 (*) ws v))) (transpose vs))
                     weights (map f32.sum weights))
          queries keys values

-- The same with the largest score of each row subtracted first, so that no exponential overflows. The mask says where
-- alone.
#[sparse(mask)]
entry stable [n] [m] [h] [d] [e] (mask: [n][m]f32) (queries: [h][n][d]f32) (keys: [h][m][d]f32)
                                 (values: [h][m][e]f32) : [h][n][e]f32 =
  let scale = 1 / f32.sqrt (f32.i64 (i64.max 1 d))
  in map3 (\qs ks vs ->
             let scores =
               map2 (\row q -> map2 (\a k -> if a == 0 then 0 else scale * f32.sum (map2 (*) q k)) row ks) mask qs
             let largest =
               map2 (\row ss -> f32.maximum (map2 (\a s -> if a == 0 then -f32.inf else s) row ss)) mask scores
             let weights =
               map3 (\row ss most -> map2 (\a s -> if a == 0 then 0 else f32.exp (s - most)) row ss)
                    mask scores largest
             in map2 (\ws total -> map (\v -> average total (f32.sum (map2 (*) ws v))) (transpose vs))
                     weights (map f32.sum weights))
          queries keys values
