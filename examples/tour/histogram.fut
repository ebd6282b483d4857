-- Histograms, what is made from them, and sorting.
--
-- With `hist`, many threads may meet in one place: the operator combines what they bring, an addition of integers by
-- one atomic instruction (`aplc cuda histogram.fut`). `scatter` only writes, so no two elements may go to one place.
-- Both leave out what goes out of bounds: an element that shall not be written gets the index -1.

-- ==
-- entry: histogram
-- input { 4i64 [0, 3, 1, 3, 3, 7, -1] } output { [1, 1, 0, 3] }

-- ==
-- entry: equalize
-- input { [[10u8, 10u8, 20u8], [30u8, 20u8, 10u8]] } output { [[127u8, 127u8, 212u8], [255u8, 212u8, 127u8]] }
-- input { empty([0][3]u8) } output { empty([0][3]u8) }

-- ==
-- entry: radix_sort
-- input { [5, -3, 8, 0, -3, 2147483647, -2147483648] } output { [-2147483648, -3, -3, 0, 5, 8, 2147483647] }
-- input { empty([0]i32) } output { empty([0]i32) }

-- ==
-- entry: last_places
-- input { [2i64, 0i64, 2i64, 3i64] } output { [1i64, -1i64, 2i64, 3i64] }

entry histogram (k: i64) (xs: []i32) : [k]i32 =
  hist (+) 0 k (map i64.i32 xs) (map (const 1) xs)

-- Spreads the grey values of an image evenly: each becomes the share of pixels that are not lighter.
entry equalize [h] [w] (image: [h][w]u8) : [h][w]u8 =
  let counts = hist (+) 0 256 (map i64.u8 (flatten image)) (replicate (h * w) 1i64)
  let cumulative = scan (+) 0 counts
  in map (map (\v -> u8.i64 (cumulative[i64.u8 v] * 255 / (h * w)))) image

-- One stable pass for each bit: zeros move to the front, in order, ones after them. A place is a count, so that no two
-- elements have the same.
def sort_by_bit [n] (xs: [n]u32) (bit: i32) : [n]u32 =
  let ones = map (\x -> i64.i32 (u32.get_bit bit x)) xs
  let zeros_before = exscan (+) 0 (map (1 -) ones)
  let ones_before = exscan (+) 0 ones
  let zeros = n - i64.sum ones
  let places = map3 (\one z o -> if one == 1 then zeros + o else z) ones zeros_before ones_before
  in scatter (copy xs) places xs

-- With the highest bit flipped, signed numbers are in the order of unsigned ones.
entry radix_sort [n] (xs: [n]i32) : [n]i32 =
  let flip_sign x = x ^ 0x80000000u32
  let sorted = loop us = map (\x -> flip_sign (u32.i32 x)) xs for bit < 32 do sort_by_bit us bit
  in map (\u -> i32.u32 (flip_sign u)) sorted

-- Where each number of 0 ... n - 1 occurs last, -1 if nowhere. Several may meet in one place, so that takes `hist`.
entry last_places [n] (xs: [n]i64) : [n]i64 =
  hist i64.max (-1) n xs (iota n)
