-- What a thread copies element by element has its price: a batch of two million elements in eight threads is slow.
-- ARGS: --size b=8 --size h=16 --size n=256 --size e=64
-- SHOWS: [0-9][0-9][0-9][0-9] us 100% .*what is inside runs in one thread
entry main [b][h][n][e] (a: [b][h][n][e]f32): [b][n][h*e]f32 =
  #[sequential_inner] map (\as -> map flatten (transpose as)) a
