-- Numbers without a suffix in a data file are of the types of the entry's parameters.
-- ==
-- input @ plain_numbers.in
-- output { 6.5f32 3i64 }

def main (n: i64) (xs: []f32) (ys: [][]f32) = (f32.sum xs + f32.sum (flatten ys), n)
