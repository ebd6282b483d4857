-- Loops that accumulate from where they like are contractions, with their start put before the result; two reduction
-- dims that lie together are one.

entry from_residual [m][n][q] (A: [m][q]i32) (B: [q][n]i32) (C: [m][n]i32) : [m][n]i32 =
  tabulate_2d m n (\i j -> loop s = C[i, j] for k < q do s + A[i, k] * B[k, j])

entry taken_away [m][n][q] (A: [m][q]i32) (B: [q][n]i32) (C: [m][n]i32) : [m][n]i32 =
  tabulate_2d m n (\i j -> loop s = C[i, j] for k < q do s - A[i, k] * B[k, j])

entry two_deep [m][n][p][q] (A: [m][p][q]i32) (B: [p][q][n]i32) : [m][n]i32 =
  tabulate_2d m n (\i j -> loop s = 1 for k < p do loop t = s for l < q do t + A[i, k, l] * B[k, l, j])
