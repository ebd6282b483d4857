-- Conway's Game of Life on a torus.
--
-- A stencil is a map over pairs of indices that reads neighbours. `%` rounds to minus infinity, so `(i - 1) % h` is the
-- last row when i is 0. The steps are a loop whose parameter is the board. Each makes a new one, as everything does in
-- this language; in the code that aplc makes, two boards take turns (`aplc c life.fut`).

-- ==
-- entry: life
-- "a blinker turns" input { 1 [[false, false, false, false, false],
--                              [false, false, true,  false, false],
--                              [false, false, true,  false, false],
--                              [false, false, true,  false, false],
--                              [false, false, false, false, false]] }
-- output { [[false, false, false, false, false],
--           [false, false, false, false, false],
--           [false, true,  true,  true,  false],
--           [false, false, false, false, false],
--           [false, false, false, false, false]] }
-- "a glider crosses the edge" input { 12 [[false, true,  false, false],
--                                         [false, false, true,  false],
--                                         [true,  true,  true,  false],
--                                         [false, false, false, false]] }
-- output { [[true, false, false, false],
--           [false, true, false, true],
--           [false, false, false, false],
--           [true, false, false, false]] }
-- "no board" input { 3 empty([0][2]bool) } output { empty([0][2]bool) }

-- ==
-- entry: alive
-- input { [[true, false], [true, true]] } output { 3i64 }

def step [h] [w] (board: [h][w]bool) : [h][w]bool =
  let cell i j = i32.bool board[i % h, j % w]
  let next i j =
    let neighbours = cell (i - 1) (j - 1) + cell (i - 1) j + cell (i - 1) (j + 1)
                     + cell i (j - 1) + cell i (j + 1)
                     + cell (i + 1) (j - 1) + cell (i + 1) j + cell (i + 1) (j + 1)
    in neighbours == 3 || (neighbours == 2 && board[i, j])
  in tabulate_2d h w next

entry life [h] [w] (steps: i32) (board: [h][w]bool) : [h][w]bool =
  loop board for _i < steps do step board

entry alive [h] [w] (board: [h][w]bool) : i64 =
  i64.sum (map i64.bool (flatten board))
