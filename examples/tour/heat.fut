-- Heat spreads over a plate whose edge is kept as it is.
--
-- Functions can be arguments, types can be parameters ('t), and neither costs anything: a call is inlined with the
-- operators that it was given, and what is left is one map over the plate (`aplc opt -p soac heat.fut`). The sizes of
-- the kernel are part of its type, here 3 and 3, and are the constant bounds of the inner loops.

-- ==
-- entry: heat
-- input { 1 [[0.0f32, 0.0f32, 0.0f32, 0.0f32], [0.0f32, 8.0f32, 0.0f32, 0.0f32], [0.0f32, 0.0f32, 0.0f32, 4.0f32],
--            [0.0f32, 0.0f32, 0.0f32, 0.0f32]] }
-- output { [[0.0f32, 0.0f32, 0.0f32, 0.0f32],
--           [0.0f32, 4.0f32, 1.0f32, 0.0f32],
--           [0.0f32, 1.0f32, 0.5f32, 4.0f32],
--           [0.0f32, 0.0f32, 0.0f32, 0.0f32]] }
-- input { 2 [[0.0f32, 0.0f32, 0.0f32, 0.0f32], [0.0f32, 8.0f32, 0.0f32, 0.0f32], [0.0f32, 0.0f32, 0.0f32, 4.0f32],
--            [0.0f32, 0.0f32, 0.0f32, 0.0f32]] }
-- output { [[0.0f32, 0.0f32, 0.0f32, 0.0f32],
--           [0.0f32, 2.25f32, 1.0625f32, 0.0f32],
--           [0.0f32, 1.0625f32, 1.0f32, 4.0f32],
--           [0.0f32, 0.0f32, 0.0f32, 0.0f32]] }
-- input { 5 [[1.0f32, 2.0f32]] } output { [[1.0f32, 2.0f32]] }

-- ==
-- entry: sharpen
-- input { [[1, 1, 1], [1, 2, 1], [1, 1, 1]] } output { [[1, 1, 1], [1, 6, 1], [1, 1, 1]] }

def on_edge [h] [w] 't (_image: [h][w]t) (i: i64) (j: i64) : bool =
  i == 0 || j == 0 || i == h - 1 || j == w - 1

def convolve [h] [w] [k] [l] 't (add: t -> t -> t) (mul: t -> t -> t) (zero: t)
                                (kernel: [k][l]t) (image: [h][w]t) : [h][w]t =
  let inner i j =
    loop sum = zero for a < k do
      loop sum for b < l do
        sum `add` (kernel[a, b] `mul` image[i + a - k / 2, j + b - l / 2])
  in tabulate_2d h w (\i j -> if on_edge image i j then image[i, j] else inner i j)

entry heat [h] [w] (steps: i32) (plate: [h][w]f32) : [h][w]f32 =
  let kernel = [[0, 0.125, 0], [0.125, 0.5, 0.125], [0, 0.125, 0]]
  in loop plate for _i < steps do convolve (+) (*) 0 kernel plate

entry sharpen [h] [w] (image: [h][w]i32) : [h][w]i32 =
  convolve (+) (*) 0 [[0, -1, 0], [-1, 5, -1], [0, -1, 0]] image
