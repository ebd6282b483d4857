-- Parameters whose sizes are constants that are computed: functions and entries have names for them.
def digits (s: []u8): []u64 = map (\c -> u64.u8 (c - 48)) (filter (> 48) s)
def limbs = length (digits "10203")

def next (a: [limbs]u64): [limbs]u64 = map (+ 1) a
#[noinline]
def weighted [n] (a: [limbs]u64) (b: [n][limbs]u64): [n]u64 = map (\x -> u64.sum (map2 (*) (next x) a)) b

-- ==
-- entry: weigh
-- input { [1u64, 2u64, 3u64] [[0u64, 1u64, 0u64], [4u64, 0u64, 1u64]] } output { [8u64, 13u64] [16u64, 26u64] }
-- input { [1u64, 2u64] [[0u64, 1u64]] } error: cannot match shape
entry weigh [n] (a: [limbs]u64) (b: [n][limbs]u64): ([n]u64, [n]u64) = (weighted a b, weighted (map (* 2) a) b)
