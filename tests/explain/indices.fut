-- Written with indices, of rank 4.
-- ARGS: --size a=64 --size b=64 --size c=64 --size d=64 --size q=64
-- SHOWS: aqb,qcd->abcd +tiled
entry main [a][b][c][d][q] (X: [a][q][b]f32) (Y: [q][c][d]f32) : [a][b][c][d]f32 =
  tabulate a (\i -> tabulate_3d b c d (\j k l -> f32.sum (tabulate q (\p -> X[i, p, j] * Y[p, k, l]))))
