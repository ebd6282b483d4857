-- Contractions whose operands are contiguous along another dim than the results: variant `transposed`, which the model
-- takes where sizes are large, must give what the others give. Reduction dims that lie apart, empty ones, 16 bits,
-- another operator.
-- ==
-- entry: one
-- random input { [31][37][29]f32 [5][37]f32 } auto output
-- random input { [1][1][1]f32 [1][1]f32 } auto output
-- random input { [7][0][9]f32 [5][0]f32 } auto output
entry one [a][b][c][d] (L: [a][d][b]f32) (R: [c][d]f32): [c][b][a]f32 =
  tabulate c (\j -> tabulate b (\k -> tabulate a (\l -> f32.sum (tabulate d (\q -> L[l,q,k] * R[j,q])))))
-- ==
-- entry: two
-- random input { [9][11][8][7]f64 [13][11][8]f64 } auto output
entry two [a][b][c][e][f] (L: [a][e][f][b]f64) (R: [c][e][f]f64): [c][b][a]f64 =
  tabulate c (\j -> tabulate b (\k -> tabulate a (\l -> f64.sum (tabulate e (\q -> f64.sum (tabulate f (\r -> L[l,q,r,k] * R[j,q,r])))))))
-- ==
-- entry: half
-- random input { [40][24][16]f16 [12][24]f16 } auto output
entry half [a][b][c][d] (L: [a][d][b]f16) (R: [c][d]f16): [c][b][a]f32 =
  tabulate c (\j -> tabulate b (\k -> tabulate a (\l -> f32.sum (tabulate d (\q -> f32.f16 L[l,q,k] * f32.f16 R[j,q])))))
-- ==
-- entry: minplus
-- random input { [20][30]i32 [30][25]i32 } auto output
entry minplus [a][b][q] (A: [a][q]i32) (B: [q][b]i32): [b][a]i32 =
  tabulate b (\j -> tabulate a (\i -> i32.minimum (tabulate q (\k -> A[i,k] + B[k,j]))))
-- ==
-- entry: added
-- random input { [32][4][2]f32 [24][32]f32 [24][2][4]f32 } auto output
entry added [q][c][b][d] (X: [q][c][b]f32) (Y: [d][q]f32) (W: [d][b][c]f32): [b][c][d]f32 =
  tabulate b (\i -> tabulate c (\j -> tabulate d (\k ->
    2 * f32.sum (tabulate q (\l -> X[l, j, i] * Y[k, l])) + W[k, i, j])))
-- ==
-- entry: part
-- random input { [3][4][4]f64 [3][50]f64 [4][50]f64 } auto output
-- random input { [1][4][4]f64 [1][7]f64 [4][7]f64 } auto output
entry part [k][m] (T: [k][4][4]f64) (W: [k][m]f64) (B: [4][m]f64): [3][m]f64 =
  loop sums = replicate 3 (replicate m 0) for i < k do
    tabulate 3 (\r -> tabulate m (\c -> sums[r, c] + f64.sum (tabulate 4 (\q -> T[i, r, q] * (B[q, c] * W[i, c])))))
