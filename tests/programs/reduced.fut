-- What random programs found, reduced.

-- A kernel reads the scalar result of a loop at host level.
entry loop_result [m] (a: [m]f32) (z: i64): [2]f32 =
  let i = loop _s = 0i64 for _x in [1, 2] do z
  in if m == 0 then [0, 0] else map (\_ -> a[i % m]) [false, true]

-- An operator on planes, whose neutral plane is one number replicated.
entry planes [m] (is: [4]i64) (xsss: [4][2][m]bool): [3][2][m]bool =
  hist (map2 (map2 (!=))) (replicate 2 (replicate m false)) 3 is xsss
