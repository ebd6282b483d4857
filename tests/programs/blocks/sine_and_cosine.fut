-- Sines and cosines of the same numbers, which GPUs compute together.
-- ==
-- entry: turns
-- random input { [1000]f32 [1000]f64 [300]f16 } auto output

entry turns [n][m] (xs: [n]f32) (ys: [n]f64) (zs: [m]f16) =
  (map (\x -> f32.sin (x * 10) * 2 + f32.cos (x * 10)) xs, map (\y -> (f64.cos y, f64.sin y)) ys |> unzip, map (\z -> f16.sin z + f16.cos z) zs,
   map (\x -> if x > 0.5 then f32.sin x else f32.cos x) xs)
