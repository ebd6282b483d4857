-- The Mandelbrot set: how many steps each point takes to leave the circle of radius 2.
--
-- Loops are expressions: the parameters (x, y, k) start as (0, 0, 0), each turn gives the next ones, and the result is
-- the last ones. A `while` loop inside a map runs in each thread on its own; a GPU's threads that leave early wait for
-- the others of their warp. Numbers of points and steps are arguments: another picture needs no other program.

-- ==
-- entry: mandelbrot
-- input { 20 [-2.0f32, -1.0f32, 0.0f32, 0.5f32] [-1.0f32, 0.0f32, 0.25f32] }
-- output { [[1, 3, 20, 2], [20, 20, 20, 5], [1, 20, 20, 5]] }
-- input { 0 [0.0f32] [0.0f32] } output { [[0]] }

def escape (limit: i32) (cx: f32) (cy: f32) : i32 =
  let (_, _, steps) =
    loop (x, y, k) = (0, 0, 0)
    while k < limit && x * x + y * y <= 4 do
      (x * x - y * y + cx, 2 * x * y + cy, k + 1)
  in steps

entry mandelbrot [h] [w] (limit: i32) (xs: [w]f32) (ys: [h]f32) : [h][w]i32 =
  map (\y -> map (\x -> escape limit x y) xs) ys
