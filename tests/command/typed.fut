entry main (n: i64) (x: f32) (ys: []u8) = (n + 1, x * 2, map (+ 1) ys)
