-- Prefix sums, and what else a scan can carry along.
--
-- `scan` takes any associative operator, also one on tuples. Which points of a hill are seen from its start? Those
-- whose slope is above all slopes before: an exclusive scan with the larger of two fractions. Sums that begin anew
-- where a flag is set: a scan of pairs. It runs in chunks of which many are in work at a time (`aplc explain`), so an
-- operator that is not associative gives results that depend on the machine.

-- ==
-- entry: visible
-- input { [0, 1, 4, 3, 7, 12] } output { [true, true, true, false, false, true] }
-- input { [5] } output { [true] }
-- input { empty([0]i32) } output { empty([0]bool) }

-- ==
-- entry: sums_in_segments
-- input { [true, false, false, true, false] [1, 2, 3, 4, 5] } output { [1, 3, 6, 4, 9] }

-- ==
-- entry: run_numbers
-- input { [7, 7, 3, 3, 3, 7] } output { [0i64, 0i64, 1i64, 1i64, 1i64, 2i64] [2i64, 3i64, 1i64, 0i64, 0i64, 0i64] }

-- (height, distance), compared as fractions; (-1, 0) is below them all.
def steeper (a: (i64, i64)) (b: (i64, i64)) : (i64, i64) =
  if b.0 * a.1 > a.0 * b.1 then b else a

entry visible [n] (heights: [n]i32) : [n]bool =
  let slopes = tabulate n (\i -> (i64.i32 heights[i] - i64.i32 heights[0], i))
  let before = exscan steeper (-1, 0) (map (\(h, d) -> if d == 0 then (-1, 0) else (h, d)) slopes)
  in map2 (\(h, d) (h0, d0) -> d == 0 || h * d0 > h0 * d) slopes before

entry sums_in_segments [n] (starts: [n]bool) (xs: [n]i32) : [n]i32 =
  let add (f, x) (g, y) = (f || g, if g then y else x + y)
  in (unzip (scan add (false, 0) (zip starts xs))).1

-- To which run of equal elements each belongs, and the lengths of the runs.
entry run_numbers [n] (xs: [n]i32) : ([n]i64, [n]i64) =
  let starts = tabulate n (\i -> i64.bool (i > 0 && xs[i] != xs[i - 1]))
  let numbers = scan (+) 0 starts
  in (numbers, hist (+) 0 n numbers (replicate n 1))
