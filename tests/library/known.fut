-- A product whose matrix is compiled into the library (known.c).
#[sparse(A)] #[constant(A)]
entry product [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A
