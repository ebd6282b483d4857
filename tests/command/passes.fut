-- Every kind of case that must pass on every backend.
-- ==
-- tags { small }
-- entry: main
-- "literal" input { [[1f32, 2f32], [3f32, 4f32]] [[1f32, 0f32], [0f32, 1f32]] }
-- output { [[1f32, 2f32], [3f32, 4f32]] }
-- random input { [3][4]f32 [4][5]f32 } auto output
-- "not here" no_c no_interpreter no_emulate input { 1 } output { 2 }
-- input { [[1f32, 2f32]] [[1f32]] } error: Error
-- warning: ^$

-- A second entry.
-- ==
-- entry: add
-- random input { [10]i32 [10]i32 }

entry main [n] [m] [p] (a: [n][m]f32) (b: [m][p]f32) : [n][p]f32 =
  map (\row -> map (\column -> reduce (+) 0 (map2 (*) row column)) (transpose b)) a

entry add [n] (a: [n]i32) (b: [n]i32) : [n]i32 = map2 (+) a b
